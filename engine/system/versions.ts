import type { Steps } from '../http/versions/steps.ts';
import type { Info } from './schema.ts';

/** Newest first; each applies to answers for older versions. */
export const infoSteps: Steps<unknown, Info> = [{ below: '1.25', response: plainSecurityOptions }];

/** Older clients know the names alone: `seccomp` for `name=seccomp,profile=default`. */
function plainSecurityOptions({ SecurityOptions, ...info }: Info): Info {
  return { ...info, SecurityOptions: SecurityOptions.map((option) => /^name=([^,]*)/.exec(option)?.[1] ?? option) };
}
