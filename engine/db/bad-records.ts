/** A record that cannot be decoded. It stays in the database, and its files stay where they are. */
type BadRecord = Readonly<{ table: string; id: string; reason: unknown }>;

/** The records that were set aside when the database was read, and were not replaced or deleted since. */
export class BadRecords {
  #all: readonly BadRecord[] = [];

  all(): readonly BadRecord[] {
    return this.#all;
  }

  idsIn(table: string): string[] {
    return this.#all.filter((bad) => bad.table === table).map(({ id }) => id);
  }

  find(table: string, id: string): BadRecord | undefined {
    return this.#all.find((bad) => bad.table === table && bad.id === id);
  }

  add(bad: BadRecord): void {
    this.#all = [...this.#all, bad];
  }

  delete(bad: BadRecord): void {
    this.#all = this.#all.filter((other) => other !== bad);
  }
}
