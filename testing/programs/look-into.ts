import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

/** Makes the program of `look-into.c`, which needs nothing of the root that it runs in. */
export function compileLookInto(program: string): void {
  const source = join(import.meta.dirname, 'look-into.c');
  execFileSync('cc', ['-static', '-O1', '-Wall', '-Werror', '-o', program, source], { stdio: 'pipe' });
}
