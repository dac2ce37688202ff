import { Agent, request, type IncomingMessage } from 'node:http';

import { readWhole } from '../../lib/bytes/read-whole.ts';
import type { Clock } from '../../lib/clock.ts';
import { hasCode } from '../../lib/errors.ts';
import { lines } from './lines.ts';
import type { KeyValue, Op, Put, RangeAnswer, TxnAnswer, WatchEvent } from './messages.ts';

/** A refusal of etcd; `code` is one of gRPC, such as 14 for a member that cannot answer now. */
export class EtcdError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.name = 'EtcdError';
    this.code = code;
  }
}

const ANSWER_TIMEOUT_MS = 5000;
/** Time to read all records, or to begin a watch. */
const LONG_ANSWER_TIMEOUT_MS = 60_000;
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** All records, or the changes that a watch has missed: etcd has 2 GB at most, a text of JavaScript half a GB. */
const MAX_RECORDS_BYTES = 500_000_000;
/** Codes of gRPC. */
const [DEADLINE_EXCEEDED, INTERNAL, UNAVAILABLE] = [4, 13, 14];
/** The errors of a connection to a member that has ended, before the request or amid it. */
const GONE = ['ECONNREFUSED', 'ENOENT', 'ECONNRESET', 'EPIPE'];
type Body = Readonly<Record<string, unknown>>;

/**
 * A member of etcd, over its JSON gateway on a Unix socket: int64 are texts there, bytes base64, and what is false or 0
 * is left out.
 */
export class Etcd implements Disposable {
  readonly #clock: Clock;
  readonly #socketPath: string;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: 4 });

  constructor(socketPath: string, clock: Clock) {
    this.#clock = clock;
    this.#socketPath = socketPath;
  }

  /** All keys, or those from `prefix` on; `serializable` reads this member's own copy, also without a quorum. */
  async all({
    serializable = false,
    signal,
  }: { serializable?: boolean; signal?: AbortSignal } = {}): Promise<RangeAnswer> {
    const body = { key: encode('\0'), range_end: encode('\0'), serializable };
    const limits = { milliseconds: LONG_ANSWER_TIMEOUT_MS, maxBytes: MAX_RECORDS_BYTES };
    return recordsIn(await this.#ask('/v3/kv/range', body, limits, signal));
  }

  /** Returns the value of a key, now or at a revision. */
  async get(
    key: string,
    milliseconds = ANSWER_TIMEOUT_MS,
    at?: number,
  ): Promise<{ revision: number; kv: KeyValue | undefined }> {
    const then = at === undefined ? {} : { revision: String(at) };
    const { revision, kvs } = recordsIn(await this.call('/v3/kv/range', { key: encode(key), ...then }, milliseconds));
    return { revision, kv: kvs[0] };
  }

  /** Stores everything or nothing: nothing unless each key of `ifRevisions` was last changed by that revision (0: missing). */
  async store(
    ifRevisions: Readonly<Record<string, number>>,
    ops: readonly Op[],
    milliseconds: number,
  ): Promise<TxnAnswer> {
    const compare = Object.entries(ifRevisions).map(([key, revision]) => ({
      key: encode(key),
      target: 'MOD',
      result: 'EQUAL',
      mod_revision: String(revision),
    }));
    const answer = await this.call('/v3/kv/txn', { compare, success: ops.map(wireOp) }, milliseconds);
    return { succeeded: answer.succeeded === true, revision: revisionOf(answer) };
  }

  /** Changes of all keys from a revision on, whole commits, until the signal or the end of the member. */
  async *watch(from: number, signal: AbortSignal): AsyncGenerator<WatchEvent[], void> {
    const wanted = { key: encode('\0'), range_end: encode('\0'), start_revision: String(from) };
    const body = await this.#openWatch({ create_request: wanted }, signal);
    for await (const line of lines(body, MAX_RECORDS_BYTES, () => tooLarge('/v3/watch', MAX_RECORDS_BYTES))) {
      const { result, error } = parse('/v3/watch', line) as { result?: Body; error?: Body };
      if (result === undefined) throw refusal(error ?? {});
      if (result.canceled === true) throw new EtcdError(11, sayingOf(result.cancel_reason) ?? 'the watch was canceled');
      yield ((result.events ?? []) as { type?: string; kv: WireKeyValue }[]).map(({ type, kv }) => ({
        ...readKeyValue(kv),
        isDeleted: type === 'DELETE',
      }));
    }
  }

  async grantLease(seconds: number): Promise<string> {
    const answer = await this.call('/v3/lease/grant', { TTL: String(seconds) });
    return String(answer.ID);
  }

  /** Renews the lease; the seconds that it has left, or 0 when it is over. */
  async keepLease(id: string, milliseconds: number): Promise<number> {
    const { result } = await this.call('/v3/lease/keepalive', { ID: id }, milliseconds);
    return Number((result as Body | undefined)?.TTL ?? 0);
  }

  async endLease(id: string): Promise<void> {
    await this.call('/v3/lease/revoke', { ID: id }, 1000);
  }

  /** Throws an `EtcdError`: for a refusal, when no answer comes in time, and when the member is gone; after `signal` its reason. */
  async call(path: string, body: Body, milliseconds = ANSWER_TIMEOUT_MS, signal?: AbortSignal): Promise<Body> {
    return await this.#ask(path, body, { milliseconds, maxBytes: MAX_ANSWER_BYTES }, signal);
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }

  async #ask(
    path: string,
    body: Body,
    { milliseconds, maxBytes }: Readonly<{ milliseconds: number; maxBytes: number }>,
    signal?: AbortSignal,
  ): Promise<Body> {
    const late = new AbortController();
    const over = signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]);
    using _timer = this.#clock.after(milliseconds, () => late.abort(notInTime(path, milliseconds)));
    try {
      const answer = await this.#send(path, body, over);
      const read = await readWhole(answer, maxBytes);
      if (read === undefined) {
        answer.on('error', () => undefined).destroy();
        throw tooLarge(path, maxBytes);
      }
      const told = parse(path, read.toString());
      if (answer.statusCode !== 200) throw refusal(told);
      if (told.error !== undefined) throw refusal(told.error as Body);
      return told;
    } catch (error) {
      if (over.aborted) throw over.reason;
      throw isGone(error) ? new EtcdError(UNAVAILABLE, 'etcd does not run') : error;
    }
  }

  /** The stream of a watch, of which etcd sends the head at once. */
  async #openWatch(body: Body, signal: AbortSignal): Promise<IncomingMessage> {
    const late = new AbortController();
    using _timer = this.#clock.after(LONG_ANSWER_TIMEOUT_MS, () =>
      late.abort(notInTime('/v3/watch', LONG_ANSWER_TIMEOUT_MS)),
    );
    try {
      return await this.#send('/v3/watch', body, AbortSignal.any([late.signal, signal]));
    } catch (error) {
      throw late.signal.aborted ? late.signal.reason : error;
    }
  }

  /** The head of the answer. */
  async #send(path: string, body: Body, signal: AbortSignal): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const text = JSON.stringify(body);
    const headers = { 'Content-Length': Buffer.byteLength(text) };
    const to = { socketPath: this.#socketPath, agent: this.#agent, method: 'POST', path, headers, signal };
    const outgoing = request(to, resolve);
    outgoing.on('error', reject);
    outgoing.end(text);
    return await promise;
  }
}

function notInTime(path: string, milliseconds: number): EtcdError {
  return new EtcdError(DEADLINE_EXCEEDED, `etcd has not answered ${path} for ${milliseconds / 1000} s`);
}

function tooLarge(path: string, maxBytes: number): EtcdError {
  return new EtcdError(INTERNAL, `etcd answers ${path} with more than ${maxBytes} bytes`);
}

function isGone(error: unknown): boolean {
  return GONE.some((code) => hasCode(error, code));
}

function parse(path: string, text: string): Body {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Body;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new EtcdError(INTERNAL, `etcd answers ${path} with something else than JSON`);
}

function recordsIn(answer: Body): RangeAnswer {
  return { revision: revisionOf(answer), kvs: ((answer.kvs ?? []) as WireKeyValue[]).map(readKeyValue) };
}

type WireKeyValue = { key: string; value?: string; mod_revision: string; create_revision?: string };

function readKeyValue({ key, value = '', mod_revision: revision }: WireKeyValue): KeyValue {
  return { key: decode(key), value: decode(value), revision: Number(revision) };
}

function wireOp(op: Op): Body {
  if ('delete' in op) return { request_delete_range: { key: encode(op.delete) } };
  return { request_put: wirePut(op) };
}

function wirePut({ put, value, lease }: Put): Body {
  return { key: encode(put), value: encode(value), ...(lease === undefined ? {} : { lease }) };
}

function revisionOf({ header }: Body): number {
  return Number((header as { revision?: string } | undefined)?.revision ?? 0);
}

function refusal({ code, grpc_code: grpcCode, message, error }: Body): EtcdError {
  return new EtcdError(
    Number(code ?? grpcCode ?? 2),
    sayingOf(message) ?? sayingOf(error) ?? 'etcd refused without a reason',
  );
}

function sayingOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

const encode = (text: string): string => Buffer.from(text).toString('base64');
const decode = (text: string): string => Buffer.from(text, 'base64').toString();
