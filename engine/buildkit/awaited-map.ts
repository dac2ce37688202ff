/** Values by names, which may be asked for before they are there. */
export class AwaitedMap<Value> {
  readonly #values = new Map<string, Value>();
  readonly #waiting = new Map<string, Set<(value: Value) => void>>();

  get size(): number {
    return this.#values.size;
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  set(name: string, value: Value): void {
    this.#values.set(name, value);
    for (const resolve of this.#waiting.get(name) ?? []) resolve(value);
  }

  delete(name: string): void {
    this.#values.delete(name);
  }

  /** Waits until it is there, for at most so long; undefined if it does not come. */
  async find(name: string, milliseconds: number, signal: AbortSignal): Promise<Value | undefined> {
    const known = this.#values.get(name);
    if (known !== undefined) return known;
    const { promise, resolve } = Promise.withResolvers<Value | undefined>();
    const waiting = this.#waiting.getOrInsertComputed(name, () => new Set());
    const late = AbortSignal.any([signal, AbortSignal.timeout(milliseconds)]);
    const giveUp = (): void => resolve(undefined);
    waiting.add(resolve);
    late.addEventListener('abort', giveUp, { once: true });
    if (late.aborted) giveUp();
    try {
      return await promise;
    } finally {
      late.removeEventListener('abort', giveUp);
      waiting.delete(resolve);
      if (waiting.size === 0) this.#waiting.delete(name);
    }
  }
}
