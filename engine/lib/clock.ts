/** Time as a parameter, so that tests can hold it still. */
export type Clock = {
  now(): Temporal.Instant;
  /** Calls back once after `milliseconds`; disposing cancels. */
  after(milliseconds: number, callback: () => void): Disposable;
};

const MAX_TIMER_MS = 2 ** 31 - 1;

/** The machine's clock. Nanoseconds, as the API's timestamps have them. */
export const systemClock: Clock = {
  now: () => Temporal.Now.instant(),
  after(milliseconds, callback) {
    let timer: NodeJS.Timeout;
    // A timer holds 24 days; with more it would fire at once.
    const wait = (left: number): void => {
      const now = Math.min(left, MAX_TIMER_MS);
      timer = setTimeout(() => (left > now ? wait(left - now) : callback()), now);
    };
    wait(milliseconds);
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};

/** Resolves after this time, or as soon as `signal` is aborted. */
export async function sleep(clock: Clock, milliseconds: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted === true) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const wake = (): void => resolve();
  using _timer = clock.after(milliseconds, wake);
  signal?.addEventListener('abort', wake, { once: true });
  await promise;
  signal?.removeEventListener('abort', wake);
}

/** Resolves when all work that is due now is done, such as writing to listening clients. */
export async function nextTurn(clock: Clock): Promise<void> {
  await sleep(clock, 0);
}

/** Tells whether `work` settles within this time. */
export async function settlesWithin(work: Promise<unknown>, seconds: number, clock: Clock): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  using _timer = clock.after(seconds * 1000, () => late.resolve(false));
  return await Promise.race([work.then(() => true), late.promise]);
}
