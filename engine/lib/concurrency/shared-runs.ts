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
    let next = this.#next.get(key);
    if (next === undefined && underWay !== undefined) this.#next.set(key, (next = this.#beginAfter(underWay, key)));
    await (next ?? this.#begin(key));
  }

  async #beginAfter(run: Promise<void>, key: Key): Promise<void> {
    await run.catch(() => undefined); // for those who share it
    this.#next.delete(key);
    await this.#begin(key);
  }

  async #begin(key: Key): Promise<void> {
    const run = this.#work(key).finally(() => this.#underWay.delete(key));
    this.#underWay.set(key, run);
    await run;
  }
}
