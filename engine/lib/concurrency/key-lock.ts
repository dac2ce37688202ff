/** Mutual exclusion per key, in the order of the calls. */
export class KeyLock {
  readonly #tails = new Map<string, Promise<void>>();

  /** Waits for the lock of the key, and holds it until it is disposed. */
  async hold(key: string): Promise<Disposable> {
    const before = this.#tails.get(key);
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const tail = before === undefined ? released : before.then(() => released);
    this.#tails.set(key, tail);
    await before;
    return {
      [Symbol.dispose]: () => {
        release();
        if (this.#tails.get(key) === tail) this.#tails.delete(key);
      },
    };
  }
}
