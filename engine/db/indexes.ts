/** An index of a table's records by a key. */
export type Index<T> = {
  /** Replaces `before` by `after`; undefined stands for no record. */
  replace(before: T | undefined, after: T | undefined): void;
  clear(): void;
};

type KeyOf<T> = (record: T) => string | undefined;

/** At most one record has a key. */
export class UniqueIndex<T> implements Index<T> {
  readonly #keyOf: KeyOf<T>;
  readonly #byKey = new Map<string, T>();

  constructor(keyOf: KeyOf<T>) {
    this.#keyOf = keyOf;
  }

  get(key: string): T | undefined {
    return this.#byKey.get(key);
  }

  /** The record with the same key: itself, one that it replaces, or a conflicting one. */
  holderOfKeyOf(record: T): T | undefined {
    const key = this.#keyOf(record);
    return key === undefined ? undefined : this.#byKey.get(key);
  }

  replace(before: T | undefined, after: T | undefined): void {
    const old = before && this.#keyOf(before);
    const key = after && this.#keyOf(after);
    if (old !== undefined && old !== key) this.#byKey.delete(old);
    if (key !== undefined) this.#byKey.set(key, after!);
  }

  clear(): void {
    this.#byKey.clear();
  }
}

/** Many records may have a key: an immutable list each, in the order of insertion. */
export class GroupIndex<T> implements Index<T> {
  readonly #keyOf: KeyOf<T>;
  readonly #byKey = new Map<string, readonly T[]>();
  readonly #none: readonly T[] = [];

  constructor(keyOf: KeyOf<T>) {
    this.#keyOf = keyOf;
  }

  get(key: string): readonly T[] {
    return this.#byKey.get(key) ?? this.#none;
  }

  replace(before: T | undefined, after: T | undefined): void {
    const old = before && this.#keyOf(before);
    const key = after && this.#keyOf(after);
    if (old !== undefined && old === key) {
      this.#keep(old, (list) => list.map((record) => (record === before ? after! : record)));
      return;
    }
    if (old !== undefined) this.#keep(old, (list) => list.filter((record) => record !== before));
    if (key !== undefined) this.#keep(key, (list) => [...list, after!]);
  }

  clear(): void {
    this.#byKey.clear();
  }

  #keep(key: string, work: (list: readonly T[]) => readonly T[]): void {
    const list = work(this.get(key));
    if (list.length === 0) this.#byKey.delete(key);
    else this.#byKey.set(key, list);
  }
}
