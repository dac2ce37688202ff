import { detectCgroups, freezeCgroup } from '../../host/cgroups.ts';
import type { Container } from '../store.ts';
import { cgroupPathOf } from './places.ts';

/** Stops every process of the container where it is. Synchronous: the kernel answers at once. */
export function freeze(container: Container): void {
  freezeCgroup(detectCgroups(), cgroupPathOf(container), true);
}

/** Lets them go on; of a container that is not frozen, or not there any more, nothing is changed. */
export function thaw(container: Container): void {
  freezeCgroup(detectCgroups(), cgroupPathOf(container), false);
}
