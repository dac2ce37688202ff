import { spawn } from 'node:child_process';
import { join } from 'node:path';

/**
 * Starts a process that outlives this one and removes a container when it has ended.
 *
 * API 1.24 leaves the removal to the client, and a detached client has ended by then.
 */
export function removeInBackground(address: string, id: string): void {
  const child = spawn(process.execPath, ['--', join(import.meta.dirname, 'remove-after-end.ts'), address, id], {
    detached: true,
    stdio: 'ignore',
    cwd: '/', // so that no file system is kept busy
  });
  child.unref();
}
