import type { Channel } from './channel.ts';

const CHECK_INTERVAL_MS = 1000;
/** Checks without an answer after which a worker hangs: only time in which this process itself ran is counted. */
const MAX_MISSED_CHECKS = 15;

/** Asks a worker each second whether it still works, and calls `hangs` once when it does not. */
export function watchWorker(channel: Channel, hangs: () => void): Disposable {
  let missed = 0;
  const timer = setInterval(() => {
    missed += 1;
    if (missed === 1) {
      channel.call('ping', undefined).then(
        () => (missed = 0),
        () => clearInterval(timer), // it has ended
      );
    }
    if (missed <= MAX_MISSED_CHECKS) return;
    clearInterval(timer);
    hangs();
  }, CHECK_INTERVAL_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
