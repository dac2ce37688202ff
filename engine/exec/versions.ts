import type { Steps } from '../http/versions/steps.ts';

/** The 201 of 1.24's specification is for clients that name its version: dockerode names none, and accepts only 200. */
export const resizeSteps: Steps = [{ below: '1.25', named: true, status: 201 }];
