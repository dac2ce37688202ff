import type { SQLOutputValue } from 'node:sqlite';

type Row = Readonly<Record<string, SQLOutputValue>>;

/** A record that cannot be read. It stays in the database, and what belongs to it stays where it is. */
export type BadRecord = Readonly<{ table: string; id: string; reason: unknown }>;

/** The records that were set aside when the database was read, and have not been replaced or deleted since. */
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

  /** What `decode` makes of the rows; one at which it throws is noted and left out. `key` is the column of the id. */
  decodeAll<T>(table: string, key: string, rows: Iterable<Row>, decode: (row: Row) => T): T[] {
    const decoded: T[] = [];
    for (const row of rows) {
      try {
        decoded.push(decode(row));
      } catch (reason) {
        this.add({ table, id: String(row[key]), reason });
      }
    }
    return decoded;
  }
}

/** Throws when a record lacks one of its fields, or has it with another type: `{ id: 'string', state: 'object' }`. */
export function checkFields(record: unknown, fields: Readonly<Record<string, string>>): void {
  if (typeof record !== 'object' || record === null) throw new TypeError('it is no object');
  for (const [name, type] of Object.entries(fields)) {
    const value = (record as Record<string, unknown>)[name];
    if (typeof value !== type || value === null) throw new TypeError(`its field ${name} is ${JSON.stringify(value)}`);
  }
}
