import type { StatementSync } from 'node:sqlite';

import type { Database } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';

/** Kinds of objects of the cluster: their events have the scope `swarm`. */
const CLUSTER_TYPES = ['node', 'service', 'secret', 'config'] as const;

type EventType =
  | ('container' | 'image' | 'volume' | 'network' | 'plugin' | 'daemon' | 'builder')
  | (typeof CLUSTER_TYPES)[number];

export type EngineEvent = Readonly<{
  /** Rises with every event; readers use it as their cursor. */
  sequence: number;
  type: EventType;
  action: string;
  /** The id of the object that the event is about. */
  id: string;
  attributes: Readonly<Record<string, string>>;
  time: Temporal.Instant;
}>;

type Log = { error(details: object, message: string): void };
/** At least so many `events` are kept, unless they take more than `bytes`. */
type Bounds = { events: number; bytes: number };

const DEFAULT_BOUNDS: Bounds = { events: 100_000, bytes: 256 * 1024 * 1024 };
/** The bytes of an event besides its texts. */
const ROW_BYTES = 100;
const PRUNE_EVERY = 500;
/** Bytes of the events behind the first one of a batch: an event has its object's labels, which may have megabytes. */
const MAX_BATCH_BYTES = 256 * 1024;

const STEPS = [
  `CREATE TABLE events (
     sequence INTEGER PRIMARY KEY AUTOINCREMENT,
     time_ns INTEGER NOT NULL,
     type TEXT NOT NULL,
     action TEXT NOT NULL,
     object_id TEXT NOT NULL,
     attributes TEXT NOT NULL
   ) STRICT;
   CREATE INDEX events_by_time ON events (time_ns);`,
  // The bytes of this event and of all before it: the bytes between two events are a difference.
  `ALTER TABLE events ADD COLUMN bytes_so_far INTEGER NOT NULL DEFAULT 0`,
];

/**
 * The events of the engine: stored, and pushed to listeners.
 *
 * A reader has a cursor and reads from the table, so the table is the queue of a slow reader: no event is missed or
 * sent twice, and a slow reader takes no memory.
 */
export class Events {
  readonly #db: Database;
  readonly #log: Log;
  readonly #clock: Clock;
  readonly #bounds: Bounds;
  readonly #listeners = new Set<() => void>();
  readonly #insert: StatementSync;
  readonly #after: StatementSync;
  readonly #firstSince: StatementSync;
  readonly #prune: StatementSync;
  readonly #oldest: StatementSync;
  readonly #beyond: StatementSync;
  #last: number;
  #lastTimeNs: bigint;
  #bytesSoFar: number;
  #emitted = 0;
  /**
   * The events that were read last: of a thousand listeners that all want the same events, only the first one reads.
   */
  #batch: { cursor: number; last: number; limit: number; events: readonly EngineEvent[] } | undefined;

  constructor(db: Database, clock: Clock, log: Log, bounds: Bounds = DEFAULT_BOUNDS) {
    this.#db = db;
    this.#log = log;
    this.#clock = clock;
    this.#bounds = bounds;
    db.migrate('events', STEPS);
    this.#insert = db.sql.prepare(
      'INSERT INTO events (time_ns, type, action, object_id, attributes, bytes_so_far) VALUES (?, ?, ?, ?, ?, ?)',
    );
    this.#after = bigints(
      db.sql.prepare(
        `SELECT * FROM events WHERE sequence > :cursor AND bytes_so_far <=
           (SELECT bytes_so_far FROM events WHERE sequence > :cursor ORDER BY sequence LIMIT 1) + ${MAX_BATCH_BYTES}
         ORDER BY sequence LIMIT :limit`,
      ),
    );
    this.#firstSince = db.sql.prepare('SELECT min(sequence) AS first FROM events WHERE time_ns >= ?');
    this.#prune = db.sql.prepare('DELETE FROM events WHERE sequence <= ?');
    this.#oldest = db.sql.prepare('SELECT sequence, bytes_so_far FROM events ORDER BY sequence LIMIT 1');
    this.#beyond = db.sql.prepare('SELECT max(sequence) AS last FROM events WHERE bytes_so_far < ?');
    const newest = bigints(
      db.sql.prepare('SELECT sequence, time_ns, bytes_so_far FROM events ORDER BY sequence DESC LIMIT 1'),
    ).get();
    this.#last = Number(newest?.sequence ?? 0);
    this.#bytesSoFar = Number(newest?.bytes_so_far ?? 0);
    this.#lastTimeNs = BigInt((newest?.time_ns ?? 0) as bigint | number);
  }

  /**
   * Stores the event and notifies the listeners. Within a transaction a failure rolls back the change that the event is
   * about. Outside of one a failure is only logged, because the change has already happened. `wake: false`: the
   * listeners are notified with the next event, or by `wake`.
   */
  emit(
    type: EventType,
    action: string,
    id: string,
    attributes: Record<string, string> = {},
    { wake = true }: { wake?: boolean } = {},
  ): void {
    try {
      this.#store(type, action, id, attributes);
    } catch (error) {
      if (this.#db.inTransaction) throw error;
      this.#log.error({ err: error, type, action, id }, 'cannot store an event');
      return;
    }
    if (wake) this.#db.afterCommit(() => this.wake());
  }

  /** Notifies the listeners of new events. */
  wake(): void {
    for (const listener of this.#listeners) listener();
  }

  #store(type: EventType, action: string, id: string, attributes: Record<string, string>): void {
    const now = this.#clock.now().epochNanoseconds;
    // Clients sort by time and resume from the last event that they saw, so no two events share a time.
    this.#lastTimeNs = now > this.#lastTimeNs ? now : this.#lastTimeNs + 1n;
    const text = JSON.stringify(attributes);
    const bytes = this.#bytesSoFar + ROW_BYTES + id.length + action.length + Buffer.byteLength(text);
    const { lastInsertRowid } = this.#insert.run(this.#lastTimeNs, type, action, id, text, bytes);
    const before = { last: this.#last, bytes: this.#bytesSoFar };
    this.#last = Number(lastInsertRowid);
    this.#bytesSoFar = bytes;
    this.#emitted += 1;
    this.#db.onRollback(() => {
      // The next event gets the same number, so a cursor behind this one would miss it.
      this.#last = before.last;
      this.#bytesSoFar = before.bytes;
      this.#emitted -= 1;
      this.#batch = undefined;
    });
    if (this.#last % PRUNE_EVERY === 0) this.#pruneOld();
  }

  /** The cursor behind the newest event: reading from here gives only later events. */
  get cursor(): number {
    return this.#last;
  }

  /** The cursor before the first event at or after `time`. */
  cursorAt(time: Temporal.Instant): number {
    const { first } = this.#firstSince.get(time.epochNanoseconds) ?? {};
    return typeof first === 'number' ? first - 1 : this.#last;
  }

  /** The cursor before the oldest event that is kept. */
  get start(): number {
    const { sequence } = this.#oldest.get() ?? {};
    return typeof sequence === 'number' ? sequence - 1 : this.#last;
  }

  /** The next events behind a cursor, oldest first: at most `limit`, fewer if they are large. */
  after(cursor: number, limit = 100): readonly EngineEvent[] {
    if (cursor >= this.#last) return [];
    const known = this.#batch;
    if (known?.cursor === cursor && known.last === this.#last && known.limit === limit) return known.events;
    const events = this.#read(cursor, limit);
    this.#batch = { cursor, last: this.#last, limit, events };
    return events;
  }

  #read(cursor: number, limit: number): EngineEvent[] {
    return this.#after.all({ ':cursor': cursor, ':limit': limit }).map((row) => ({
      sequence: Number(row.sequence),
      type: row.type as EventType,
      action: String(row.action),
      id: String(row.object_id),
      attributes: JSON.parse(String(row.attributes)),
      time: new Temporal.Instant(row.time_ns as bigint),
    }));
  }

  /** Calls `listener` after every event until it is disposed. */
  listen(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** How many were stored since this daemon's start. */
  get emitted(): number {
    return this.#emitted;
  }

  get listenerCount(): number {
    return this.#listeners.size;
  }

  #pruneOld(): void {
    const oldest = this.#oldest.get();
    if (oldest === undefined) return;
    const excess = this.#bytesSoFar - Number(oldest.bytes_so_far) - this.#bounds.bytes;
    const last = excess > 0 ? this.#beyond.get(this.#bytesSoFar - this.#bounds.bytes)?.last : undefined;
    this.#prune.run(Math.max(this.#last - this.#bounds.events, typeof last === 'number' ? last : 0));
  }
}

export function scopeOf(type: EventType): 'local' | 'swarm' {
  return CLUSTER_TYPES.some((each) => each === type) ? 'swarm' : 'local';
}

/** Nanoseconds since 1970 do not fit into a JavaScript number. */
function bigints(statement: StatementSync): StatementSync {
  statement.setReadBigInts(true);
  return statement;
}
