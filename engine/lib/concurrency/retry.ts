import { sleep, type Clock } from '../clock.ts';

type Retry = Readonly<{
  clock: Clock;
  /** No attempt begins later than this after the first one. */
  timeoutMs: number;
  /** Between attempts; with `maxDelayMs` it doubles each time, up to that. */
  delayMs: number;
  maxDelayMs?: number;
  /** Ends the wait between attempts, with its reason. */
  signal?: AbortSignal | undefined;
  /** Whether the same attempt may succeed later. */
  isTransient: (error: unknown) => boolean;
}>;

/**
 * Calls `attempt` until it succeeds, with the milliseconds that are left. Throws its error if that is not transient, and the
 * last one after the time is over.
 */
export async function retry<T>(
  { clock, timeoutMs, delayMs, maxDelayMs = delayMs, signal, isTransient }: Retry,
  attempt: (leftMs: number) => Promise<T> | T,
): Promise<T> {
  const until = performance.now() + timeoutMs;
  for (let nextMs = delayMs; ; nextMs = Math.min(nextMs * 2, maxDelayMs)) {
    try {
      return await attempt(until - performance.now());
    } catch (error) {
      if (!isTransient(error) || performance.now() > until) throw error;
    }
    await sleep(clock, nextMs, signal);
    signal?.throwIfAborted();
  }
}
