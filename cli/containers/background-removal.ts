import { spawn } from 'node:child_process';
import { join } from 'node:path';

/**
 * Has a container removed when it has ended, by a process that outlives this one.
 *
 * API 1.24 leaves the removal to the client, and a detached client is gone by then.
 */
export function removeInBackground(address: string, id: string): void {
  const child = spawn(process.execPath, ['--', join(import.meta.dirname, 'remove-after-end.ts'), address, id], {
    detached: true,
    stdio: 'ignore',
    cwd: '/', // so that no file system is kept busy
  });
  child.unref();
}
