/** Runs work for all who ask for it: for each key one run at a time, and all who ask meanwhile share the next. */
export class SharedRuns<Key> {
  readonly #work: (key: Key) => Promise<void>;
  readonly #underWay = new Map<Key, Promise<void>>();
  readonly #next = new Map<Key, Promise<void>>();

  constructor(work: (key: Key) => Promise<void>) {
    this.#work = work;
  }

  /** Settles as a run that has begun after this call. */
  async run(key: Key): Promise<void> {
    const underWay = this.#underWay.get(key);
    const next = this.#next.get(key) ?? (underWay === undefined ? this.#begin(key) : this.#beginAfter(underWay, key));
    await next;
  }

  async #beginAfter(run: Promise<void>, key: Key): Promise<void> {
    const next = run
      .catch(() => undefined) // for those who share it
      .then(async () => {
        this.#next.delete(key);
        await this.#begin(key);
      });
    this.#next.set(key, next);
    await next;
  }

  async #begin(key: Key): Promise<void> {
    const run = this.#work(key).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, run);
    await run;
  }
}
