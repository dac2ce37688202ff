import { chmodSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname } from 'node:path';

import { hasCode } from './errors.ts';

/**
 * Creates a folder and its missing parents with this mode, regardless of the umask. An existing folder stays unchanged.
 */
export function makeFolders(path: string, mode: number): void {
  const first = mkdirSync(path, { recursive: true, mode });
  if (first === undefined) return;
  for (let made = path; made.length >= first.length; made = dirname(made)) chmodSync(made, mode);
}

/** The names in a folder; empty for a missing one. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}
