import { existsSync, writeFileSync } from 'node:fs';

import { hasCode } from '../lib/errors.ts';
import { cgroupPathOf } from './places.ts';
import type { Container } from './store.ts';

/** Stops every process of the container where it is. Synchronous: the kernel answers at once. */
export function freeze(container: Container): void {
  write(container, true);
}

/** Lets them go on; of a container that is not frozen, or not there any more, nothing is changed. */
export function thaw(container: Container): void {
  try {
    write(container, false);
  } catch (error) {
    // Its cgroup may go while it is opened: the kernel then says ENODEV.
    if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENODEV')) throw error;
  }
}

function write(container: Container, frozen: boolean): void {
  const path = cgroupPathOf(container);
  const old = `/sys/fs/cgroup/freezer${path}/freezer.state`;
  if (existsSync(old)) writeFileSync(old, frozen ? 'FROZEN' : 'THAWED');
  else writeFileSync(`/sys/fs/cgroup${path}/cgroup.freeze`, frozen ? '1' : '0');
}
