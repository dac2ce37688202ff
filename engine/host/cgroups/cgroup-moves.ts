import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { detectCgroups } from './cgroups.ts';

/** The kernel stays prepared for a grace period of RCU, some 10 ms, after the last move. */
const PREPARED_MS = 5;

let preparation: { underWay: boolean; endedAt: number } = { underWay: false, endedAt: -Infinity };

/**
 * Tells the kernel that processes are about to be moved into a cgroup.
 *
 * After a pause the first move waits 10 ms for RCU, because all threads of the machine have to take note. A call some
 * milliseconds before the runtime moves a process hides that wait: a start or an exec takes 10 ms less. The call moves
 * this process to the cgroup it is already in, in the background; nothing depends on its success.
 */
export function prepareMoves(): void {
  if (preparation.underWay || performance.now() - preparation.endedAt < PREPARED_MS) return;
  preparation = { underWay: true, endedAt: 0 };
  moveInPlace()
    .catch(() => undefined)
    .finally(() => (preparation = { underWay: false, endedAt: performance.now() }));
}

let mount: string | undefined;

async function moveInPlace(): Promise<void> {
  mount ??= detectCgroups().controllers.get('pids') ?? '/sys/fs/cgroup';
  const ours = ownCgroup(await readFile('/proc/self/cgroup', 'utf8'));
  await writeFile(join(mount, ours, 'cgroup.procs'), String(process.pid));
}

/** The path in `/proc/<pid>/cgroup` of the hierarchy with the pids controller, or of version 2. */
export function ownCgroup(text: string): string {
  const lines = text.split('\n').map((line) => line.split(':'));
  const found =
    lines.find(([, controllers]) => controllers?.split(',').includes('pids')) ?? lines.find(([id]) => id === '0');
  return found?.slice(2).join(':') ?? '/';
}
