/** Time as a parameter, so that tests can hold it still. */
export type Clock = {
  now(): Temporal.Instant;
  /** Calls back once after `milliseconds`; disposing cancels. */
  after(milliseconds: number, callback: () => void): Disposable;
};

/** The machine's clock. Nanoseconds, as the API's timestamps have them. */
export const systemClock: Clock = {
  now: () => Temporal.Now.instant(),
  after(milliseconds, callback) {
    const timer = setTimeout(callback, milliseconds);
    return { [Symbol.dispose]: () => clearTimeout(timer) };
  },
};
