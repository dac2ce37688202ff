import type { Clock } from '../lib/clock.ts';
import { shrink } from './memory.ts';

const LOOK_MILLISECONDS = 15_000;
/** A process that uses a smaller share of a processor is quiet. */
const QUIET_SHARE = 0.02;
const WORTH_BYTES = 8 * 1024 * 1024;

/** Returns memory to the kernel whenever the process has grown and is quiet again, as long as it lives. */
export function shrinkWhenQuiet(clock: Clock): void {
  let before = process.memoryUsage.rss();
  let usage = process.cpuUsage();
  const look = (): void => {
    const { user, system } = process.cpuUsage(usage);
    const isQuiet = (user + system) / 1000 < LOOK_MILLISECONDS * QUIET_SHARE;
    if (isQuiet && process.memoryUsage.rss() > before + WORTH_BYTES) {
      shrink();
      before = process.memoryUsage.rss();
    }
    usage = process.cpuUsage();
    clock.after(LOOK_MILLISECONDS, look);
  };
  clock.after(LOOK_MILLISECONDS, look);
}
