import type { Clock } from '../../lib/clock.ts';
import { shrink } from './memory.ts';

const LOOK_MILLISECONDS = 15_000;
/** A process that uses a smaller share of a processor is quiet. */
const QUIET_SHARE = 0.02;
/** A return takes a tenth of a second of the processor: soon after one only much more growth is worth another. */
const WORTH_BYTES = { least: 8 * 1024 * 1024, afterReturn: 32 * 1024 * 1024 };
const LESS_AT_EACH_LOOK = 0.8;

/**
 * Returns memory to the kernel whenever the process has grown and is quiet again, as long as it lives. Growth counts from
 * the look after a return, when what the process still uses is back: counted from the return itself, a process at its
 * steady work is collected at each look.
 */
export function shrinkWhenQuiet(clock: Clock): void {
  let before = process.memoryUsage.rss();
  let worth = WORTH_BYTES.least;
  let isSettled = true;
  let usage = process.cpuUsage();
  const look = (): void => {
    const { user, system } = process.cpuUsage(usage);
    const isQuiet = (user + system) / 1000 < LOOK_MILLISECONDS * QUIET_SHARE;
    const rss = process.memoryUsage.rss();
    worth = Math.max(worth * LESS_AT_EACH_LOOK, WORTH_BYTES.least);
    if (!isSettled) {
      if (isQuiet) before = rss;
      isSettled = true;
    } else if (isQuiet && rss > before + worth) {
      shrink();
      before = process.memoryUsage.rss();
      worth = WORTH_BYTES.afterReturn;
      isSettled = false;
    }
    usage = process.cpuUsage();
    clock.after(LOOK_MILLISECONDS, look);
  };
  clock.after(LOOK_MILLISECONDS, look);
}
