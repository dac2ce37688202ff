import type { Static, TSchema } from 'typebox';

import { EngineError } from '../lib/errors.ts';
import type { Database } from './database.ts';
import { Decoder, type Upgrade } from './decode.ts';
import { GroupIndex, UniqueIndex, type Index } from './indexes.ts';

type RecordOf<S extends TSchema> = Readonly<Static<S>>;
type Keys<S extends TSchema, K extends string> = Readonly<Record<K, (record: RecordOf<S>) => string | undefined>>;

/** The description of a table's records. */
export type Kind<S extends TSchema, U extends string, G extends string> = Readonly<{
  /** The name of the SQL table, made by `createTable`. */
  name: string;
  schema: S;
  id: (record: RecordOf<S>) => string;
  /** `upgrades[n]` leads from version n + 1 of a record to n + 2. */
  upgrades?: readonly Upgrade[];
  /** Keys that no two records share. */
  unique?: Keys<S, U>;
  /** Keys of groups of records. */
  groups?: Keys<S, G>;
  /** A check that the schema cannot express: throws for an unusable record. */
  check?: (record: RecordOf<S>) => void;
}>;

/**
 * Records of one kind: all of them in memory in the order of their insertion, immutable, and in the database as JSON.
 *
 * A change is committed before it returns, or joins the transaction that is open; memory is rolled back with it. A
 * record that cannot be decoded is set aside (`Database.badRecords`): it stays in the database and nobody sees it.
 */
export class RecordTable<S extends TSchema, U extends string = never, G extends string = never> {
  readonly #db: Database;
  readonly #kind: Kind<S, U, G>;
  readonly #byId = new Map<string, RecordOf<S>>();
  readonly #unique = new Map<string, UniqueIndex<RecordOf<S>>>();
  readonly #groups = new Map<string, GroupIndex<RecordOf<S>>>();
  readonly #indexes: readonly Index<RecordOf<S>>[];
  readonly #decoder: Decoder<S>;
  readonly #put;
  readonly #delete;

  constructor(db: Database, kind: Kind<S, U, G>) {
    this.#db = db;
    this.#kind = kind;
    this.#decoder = new Decoder(kind);
    for (const [key, of] of entries(kind.unique)) this.#unique.set(key, new UniqueIndex(of));
    for (const [key, of] of entries(kind.groups)) this.#groups.set(key, new GroupIndex(of));
    this.#indexes = [...this.#unique.values(), ...this.#groups.values()];
    this.#put = db.sql.prepare(
      `INSERT INTO ${kind.name} (id, version, record) VALUES (?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET version = excluded.version, record = excluded.record`,
    );
    this.#delete = db.sql.prepare(`DELETE FROM ${kind.name} WHERE id = ?`);
    this.#load();
  }

  get(id: string): RecordOf<S> | undefined {
    return this.#byId.get(id);
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  all(): readonly RecordOf<S>[] {
    return [...this.#byId.values()];
  }

  values(): IteratorObject<RecordOf<S>> {
    return this.#byId.values();
  }

  /** The ids of the records in memory. */
  ids(): IteratorObject<string> {
    return this.#byId.keys();
  }

  /** The ids with this prefix, two at most: enough to tell whether it is unique. The empty prefix matches none. */
  idsFrom(prefix: string): string[] {
    if (prefix === '') return [];
    return [
      ...this.ids()
        .filter((id) => id.startsWith(prefix))
        .take(2),
    ];
  }

  /** The ids of the records that cannot be decoded: their files must stay. */
  idsSetAside(): readonly string[] {
    return this.#db.badRecords.idsIn(this.#kind.name);
  }

  /** The record with a unique key. */
  by(key: U, value: string): RecordOf<S> | undefined {
    return this.#unique.get(key)!.get(value);
  }

  /** All records with a key, in the order of their insertion: the same list until one of them changes. */
  in(group: G, value: string): readonly RecordOf<S>[] {
    return this.#groups.get(group)!.get(value);
  }

  /** Throws `conflict` if a record that cannot be decoded has the id. */
  insert(record: RecordOf<S>): void {
    const id = this.#kind.id(record);
    const { name } = this.#kind;
    if (this.#byId.has(id)) throw new Error(`${name}: ${id} already exists`);
    if (this.#db.badRecords.find(name, id) !== undefined) {
      throw new EngineError('conflict', `${id} exists already, but its record cannot be read: see the daemon's log`);
    }
    this.put(record);
  }

  /** Inserts a record, or replaces the one with its id, even one that cannot be decoded. */
  put(record: RecordOf<S>): void {
    const id = this.#kind.id(record);
    this.#refuseSharedKey(id, record);
    this.#put.run(id, this.#decoder.version, JSON.stringify(record));
    this.#notSetAside(id);
    const before = this.#byId.get(id);
    this.#db.onRollback(() => this.#set(id, before));
    this.#set(id, record);
  }

  /**
   * Replaces a record by the result of `work`, which may throw to refuse, or return the same record to change nothing.
   */
  change(id: string, work: (current: RecordOf<S>) => RecordOf<S>): RecordOf<S> {
    const current = this.#byId.get(id);
    if (current === undefined) throw new Error(`${this.#kind.name}: ${id} does not exist`);
    const changed = work(current);
    if (this.#kind.id(changed) !== id) throw new Error(`${this.#kind.name}: ${id} cannot get another id`);
    if (changed !== current) this.put(changed);
    return changed;
  }

  /** Deletes a record; a missing one is not an error. */
  delete(id: string): void {
    this.#delete.run(id);
    this.#notSetAside(id);
    if (!this.#byId.has(id)) return;
    if (this.#db.inTransaction) {
      const before = [...this.#byId]; // for the order
      this.#db.onRollback(() => this.#restore(before));
    }
    this.#set(id, undefined);
  }

  #load(): void {
    const { badRecords, sql } = this.#db;
    const { name, id: idOf, check } = this.#kind;
    for (const row of sql.prepare(`SELECT id, version, record FROM ${name} ORDER BY position`).iterate()) {
      const id = String(row.id);
      try {
        const record = this.#decoder.decode(Number(row.version), String(row.record)) as RecordOf<S>;
        if (idOf(record) !== id) throw new TypeError(`it says of itself that it is ${idOf(record)}`);
        this.#refuseSharedKey(id, record);
        check?.(record);
        this.#set(id, record);
      } catch (reason) {
        badRecords.add({ table: name, id, reason });
      }
    }
  }

  #refuseSharedKey(id: string, record: RecordOf<S>): void {
    for (const [key, index] of this.#unique) {
      const holder = index.holderOfKeyOf(record);
      if (holder === undefined || this.#kind.id(holder) === id) continue;
      throw new Error(`${this.#kind.name}: ${id} has the ${key} of ${this.#kind.id(holder)}`);
    }
  }

  #notSetAside(id: string): void {
    const { badRecords } = this.#db;
    const bad = badRecords.find(this.#kind.name, id);
    if (bad === undefined) return;
    badRecords.delete(bad);
    this.#db.onRollback(() => badRecords.add(bad));
  }

  /** Keeps its place in the order. */
  #set(id: string, record: RecordOf<S> | undefined): void {
    const before = this.#byId.get(id);
    if (record === undefined) this.#byId.delete(id);
    else this.#byId.set(id, record);
    for (const index of this.#indexes) index.replace(before, record);
  }

  #restore(records: readonly (readonly [string, RecordOf<S>])[]): void {
    this.#byId.clear();
    for (const index of this.#indexes) index.clear();
    for (const [id, record] of records) this.#set(id, record);
  }
}

function entries<V>(object: Readonly<Record<string, V>> | undefined): [string, V][] {
  return Object.entries(object ?? {});
}
