import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { globSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);
export const here = import.meta.dirname;
export const repository = dirname(dirname(here));

/** Ignored by git: a machine's parts are made once. */
export const CACHE = join(repository, 'build/vm');

/** Puts what is ready into the cache, in the place of its older versions. */
export function replace(older: string, ready: string, place: string): void {
  for (const old of globSync(join(CACHE, older))) rmSync(old, { recursive: true });
  renameSync(ready, place);
}

export async function makeDisk(folder: string, disk: string, size: string): Promise<void> {
  await run('mke2fs', ['-q', '-t', 'ext4', '-O', '^has_journal', '-d', folder, disk, size]);
}

/** It ends with this process. */
export async function run(command: string, args: readonly string[]): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  await execute('setpriv', ['--pdeathsig=KILL', command, ...args], { env, maxBuffer: 1e8 });
}

/** Hash of a text and of files of this folder. */
export function hashOf(text: string, ...files: string[]): string {
  const hash = createHash('sha256').update(text);
  for (const file of files) hash.update(readFileSync(join(here, file)));
  return hash.digest('hex').slice(0, 12);
}
