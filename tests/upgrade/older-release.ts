import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** The folder of this repository. */
export const NOW = dirname(dirname(import.meta.dirname));

/**
 * Unpacks and builds the sources of a commit, which has to be in the repository's history, and returns their folder. They run
 * with today's packages.
 */
export function unpackRelease(commit: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-then-'));
  const archive = execFileSync('git', ['archive', commit], { cwd: NOW, maxBuffer: 1e9 });
  execFileSync('tar', ['x', '-C', folder], { input: archive });
  execFileSync('cp', ['-a', join(NOW, 'node_modules'), folder]); // its links lead to the sources of then
  execFileSync('make', ['-s', '-C', join(folder, 'shim')]);
  return folder;
}

export function removeRelease(folder: string): void {
  rmSync(folder, { recursive: true });
}
