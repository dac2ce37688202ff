import { existsSync } from 'node:fs';

import { EngineError } from '../lib/errors.ts';

/** The program's path in the container. */
export const INIT_PATH = '/sbin/docker-init';

/** docker's own, and the one that it is built from. */
const PROGRAMS = ['docker-init', 'tini'].flatMap((name) =>
  ['/usr/libexec/docker', '/usr/local/bin', '/usr/bin', '/bin'].map((folder) => `${folder}/${name}`),
);

/** The host's program for the first process, which reaps orphans. Throws `failed` when none is installed. */
export function initProgram(): string {
  const found = PROGRAMS.find((path) => existsSync(path));
  if (found === undefined) throw new EngineError('failed', 'exec: "docker-init": executable file not found in $PATH');
  return found;
}
