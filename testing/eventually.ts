import { setTimeout as sleep } from 'node:timers/promises';

const DEADLINE_MS = 300_000;
const FIRST_DELAY_MS = 5;
const MAX_DELAY_MS = 50;
/** After a look that takes long, such as one that starts a program, the next one waits for as long, up to this. */
const MAX_DELAY_AFTER_SLOW_LOOK_MS = 250;

/**
 * Returns the first result of `look` that is neither undefined nor false; for states that no event tells.
 *
 * Looks again ever less often, but often enough for a state that passes: a learner has its vote in a moment. Ignores the
 * errors of `look`, and throws the last one after five minutes.
 */
export async function eventually<T>(
  description: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const deadline = performance.now() + DEADLINE_MS;
  let reason: unknown = 'it did not come about';
  for (let delay = FIRST_DELAY_MS; performance.now() < deadline; delay = Math.min(delay * 1.5, MAX_DELAY_MS)) {
    const started = performance.now();
    try {
      const result = await look();
      if (result !== undefined && result !== false) return result;
    } catch (error) {
      reason = error;
    }
    await sleep(Math.max(delay, Math.min(performance.now() - started, MAX_DELAY_AFTER_SLOW_LOOK_MS)));
  }
  throw new Error(`${description}: ${reason instanceof Error ? reason.message : String(reason)}`);
}
