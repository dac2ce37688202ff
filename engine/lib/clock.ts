/** Time as a parameter, so that tests can hold it still. */
export type Clock = {
  now(): Temporal.Instant;
  /** Calls back once after `milliseconds`; disposing cancels. */
  after(milliseconds: number, callback: () => void): Disposable;
};

const LONGEST_MS = 2 ** 31 - 1;

/** The machine's clock. Nanoseconds, as the API's timestamps have them. */
export const systemClock: Clock = {
  now: () => Temporal.Now.instant(),
  after(milliseconds, callback) {
    let timer: NodeJS.Timeout;
    // A timer holds 24 days; with more it would fire at once.
    const wait = (left: number): void => {
      const now = Math.min(left, LONGEST_MS);
      timer = setTimeout(() => (left > now ? wait(left - now) : callback()), now);
    };
    wait(milliseconds);
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};

/** Resolves when all work that is due now is done, such as writing to listening clients. */
export async function nextTurn(clock: Clock): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  using _timer = clock.after(0, resolve);
  await promise;
}

/** Whether `work` settles within this time. */
export async function settlesWithin(work: Promise<unknown>, seconds: number, clock: Clock): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  using _timer = clock.after(seconds * 1000, () => late.resolve(false));
  return await Promise.race([work.then(() => true), late.promise]);
}
