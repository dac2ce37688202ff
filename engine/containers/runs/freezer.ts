import { detectCgroups, freezeCgroup } from '../../host/cgroups/cgroups.ts';
import type { Container } from '../store.ts';
import { cgroupPathOf } from './places.ts';

/** Freezes every process of the container, and returns whether it could. Synchronous, because the kernel answers at once. */
export function freeze(container: Container): boolean {
  return freezeCgroup(detectCgroups(), cgroupPathOf(container), true);
}

/** Thaws the processes; does nothing for a container that is not frozen, or gone. */
export function thaw(container: Container): void {
  freezeCgroup(detectCgroups(), cgroupPathOf(container), false);
}
