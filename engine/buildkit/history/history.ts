import type { Engine } from '../../engine.ts';
import { sha256 } from '../../layers/chain-id.ts';
import { statusOf } from '../frontend/errors.ts';
import type { StatusResponse } from '../messages/control.ts';
import { EventType } from '../messages/history.ts';
import type { Solve } from '../solve.ts';
import type { Sent } from '../wire/message.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';
import { statusBytes } from '../wire/trailers.ts';
import { HistoryStore } from './history-store.ts';
import type { BuildRecord } from './record.ts';
import { RecordedLog, statusesIn } from './recorded-log.ts';

type Attributes = ReadonlyMap<string, string>;
type Begun = Readonly<{
  ref: string;
  exporters: readonly Readonly<{ type: string; attributes: Attributes }>[];
}>;
export type HistoryChange = Readonly<{ type: number; record: BuildRecord }>;
export type Listened = Readonly<{ isActiveOnly: boolean; ref: string; endsEarly: boolean; limit: number }>;

/** Characters of the options of one build; further ones are left out. */
const MAX_TEXT_LENGTH = 64 * 1024;
/** Changes that wait for a listener; one that is slower is cut off. */
const MAX_WAITING = 1000;
const MAX_LISTENERS = 64;
/** Credentials in an address. */
const CREDENTIALS = /(\w:\/\/)[^/\s@]+@/g;

/** Builds under way, and those that are over. */
export class History {
  readonly #engine: Pick<Engine, 'clock' | 'images'>;
  readonly #store: HistoryStore;
  readonly #active = new Map<string, () => BuildRecord>();
  readonly #unwanted = new Set<string>();
  readonly #listeners = new Set<(change: HistoryChange) => void>();

  constructor(engine: Pick<Engine, 'clock' | 'config' | 'images' | 'log'>) {
    this.#engine = engine;
    this.#store = new HistoryStore(engine);
  }

  /** Runs a build, which is part of the history from its begin on. `work` returns the answer to the client. */
  async record(begun: Begun, solve: Solve, work: () => Promise<Attributes>): Promise<Attributes> {
    const { ref } = begun;
    if (this.#store.get(ref) !== undefined)
      throw new GrpcError(StatusCode.ALREADY_EXISTS, `the build ${ref} is part of the history`);
    const log = new RecordedLog();
    const createdAt = this.#engine.clock.now().toString();
    const describe = (): BuildRecord => ({
      ref,
      attributes: withinLimit(solve.attributes),
      exporters: begun.exporters.map(({ type, attributes }) => ({ type, attributes: withinLimit(attributes) })),
      createdAt,
      response: {},
      steps: log.steps,
      warnings: log.warnings,
      isPinned: false,
    });
    solve.queue.observe(log.add);
    this.#active.set(ref, describe);
    this.#tell(EventType.STARTED, describe());
    const end = (more: Partial<BuildRecord>): void => {
      this.#end({ ...describe(), completedAt: this.#engine.clock.now().toString(), ...more }, log);
    };
    try {
      const response = await work();
      end({ response: withinLimit(response), ...this.#configOf(response) });
      return response;
    } catch (error) {
      const failure = statusOf(error);
      const message = shown(failure.message);
      const safe = new GrpcError(failure.code, message, failure.details);
      end({ error: { code: failure.code, message, status: Buffer.from(statusBytes(safe)).toString('base64') } });
      throw error;
    }
  }

  /** The builds that there are, the newest first, and changes from then on. Throws for a ref that there is not. */
  async *listen({ isActiveOnly, ref, endsEarly, limit }: Listened, signal: AbortSignal): AsyncGenerator<HistoryChange> {
    const isWanted = ({ record }: HistoryChange): boolean => ref === '' || record.ref === ref;
    const active = [...this.#active.values()].map((describe) => ({ type: EventType.STARTED, record: describe() }));
    const over = isActiveOnly ? [] : this.#store.all().map((record) => ({ type: EventType.COMPLETE, record }));
    const known = [...active.toReversed(), ...over].filter(isWanted).slice(0, limit > 0 ? limit : Infinity);
    if (endsEarly) return yield* known;
    if (this.#listeners.size >= MAX_LISTENERS)
      throw new GrpcError(StatusCode.RESOURCE_EXHAUSTED, 'too many clients listen to the history of builds');
    const waiting: HistoryChange[] = [...known];
    let wake = Promise.withResolvers<void>();
    const onChange = (change: HistoryChange): void => {
      if (!isWanted(change) || (isActiveOnly && change.type !== EventType.STARTED)) return;
      waiting.push(change);
      wake.resolve();
    };
    const leave = (): void => wake.resolve();
    this.#listeners.add(onChange);
    signal.addEventListener('abort', leave, { once: true });
    try {
      while (!signal.aborted) {
        if (waiting.length > MAX_WAITING)
          throw new GrpcError(StatusCode.RESOURCE_EXHAUSTED, 'the client reads the history of builds too slowly');
        yield* waiting.splice(0);
        wake = Promise.withResolvers();
        if (waiting.length === 0 && !signal.aborted) await wake.promise;
      }
    } finally {
      signal.removeEventListener('abort', leave);
      this.#listeners.delete(onChange);
    }
  }

  /** Throws for a ref that there is not. */
  pin(ref: string, isPinned: boolean): void {
    const known = this.#find(ref);
    if (known === undefined) return;
    if (!this.#store.pin(ref, isPinned))
      throw new GrpcError(StatusCode.RESOURCE_EXHAUSTED, 'too many builds are pinned');
    this.#tell(EventType.COMPLETE, this.#store.get(ref)!);
  }

  /** Deletes a record; that of a build under way is not stored. Throws for a ref that there is not. */
  delete(ref: string): void {
    const known = this.#find(ref);
    if (known === undefined) this.#unwanted.add(ref);
    else this.#forget(known);
  }

  /** Throws for a ref that there is not. */
  finalize(ref: string): void {
    this.#find(ref); // there is no trace to wait for
  }

  /** The progress of a build that is over; undefined: it is no part of the history. */
  async log(ref: string): Promise<Iterable<Sent<typeof StatusResponse>> | undefined> {
    return this.#store.get(ref) === undefined ? undefined : statusesIn(await this.#store.log(ref));
  }

  /** A document that a record names. */
  document(digest: string): Buffer | undefined {
    for (const { error, config } of this.#store.all()) {
      if (config?.digest === digest && this.#engine.images.get(digest) !== undefined)
        return Buffer.from(this.#engine.images.jsonOf(digest));
      const status = error && Buffer.from(error.status, 'base64');
      if (status !== undefined && sha256(status) === digest) return status;
    }
    return undefined;
  }

  /** Undefined for a build under way. */
  #find(ref: string): BuildRecord | undefined {
    const record = this.#store.get(ref);
    if (record === undefined && !this.#active.has(ref))
      throw new GrpcError(StatusCode.NOT_FOUND, `no record of a build ${JSON.stringify(ref)}`);
    return record;
  }

  #end(record: BuildRecord, log: RecordedLog): void {
    const { ref } = record;
    this.#active.delete(ref);
    if (this.#unwanted.delete(ref)) return this.#tell(EventType.DELETED, record);
    for (const gone of this.#store.add(record, log.bytes())) this.#tell(EventType.DELETED, { ...record, ref: gone });
    this.#tell(EventType.COMPLETE, record);
  }

  #forget(record: BuildRecord): void {
    this.#store.delete(record.ref);
    this.#tell(EventType.DELETED, record);
  }

  #tell(type: number, record: BuildRecord): void {
    for (const listener of this.#listeners) listener({ type, record });
  }

  #configOf(response: Attributes): Pick<BuildRecord, 'config'> {
    const digest = response.get('containerimage.config.digest');
    if (digest === undefined || this.#engine.images.get(digest) === undefined) return {};
    return { config: { digest, size: Buffer.byteLength(this.#engine.images.jsonOf(digest)) } };
  }
}

/** Options without credentials, as many as the limit takes. */
function withinLimit(attributes: Attributes): Record<string, string> {
  let left = MAX_TEXT_LENGTH;
  const kept = [...attributes].flatMap(([key, value]) => {
    left -= key.length + value.length;
    return left < 0 ? [] : [[key, shown(value)] as const];
  });
  return Object.fromEntries(kept);
}

function shown(text: string): string {
  return text.replaceAll(CREDENTIALS, '$1xxxxx@');
}
