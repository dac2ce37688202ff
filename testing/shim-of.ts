import { readFileSync } from 'node:fs';

/**
 * The shim of a container's first process: its parent, or, until the runtime's last helper has gone, further up.
 * Throws when there is none.
 */
export function shimOf(pid: number): number {
  for (let up = parentOf(pid); up > 1;) {
    const status = statusOf(up);
    if (status?.startsWith('Name:\tgantry-shim') === true) return up;
    up = status === undefined ? parentOf(pid) : parentIn(status); // a helper that has ended meanwhile
  }
  throw new Error(`process ${pid} has no shim`);
}

function parentOf(pid: number): number {
  return parentIn(readFileSync(`/proc/${pid}/status`, 'utf8'));
}

function parentIn(status: string): number {
  return Number(/^PPid:\s*(\d+)$/m.exec(status)?.[1]);
}

function statusOf(pid: number): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && ['ENOENT', 'ESRCH'].includes(String(error.code))) return undefined;
    throw error;
  }
}
