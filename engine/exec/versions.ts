import type { Steps } from '../http/versions/steps.ts';

/** The 201 of 1.24's specification is for those who name its version: dockerode names none, and takes only 200. */
export const resizeSteps: Steps = [{ below: '1.25', named: true, status: 201 }];
