import { Agent, request, type IncomingMessage } from 'node:http';

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
    return await this.#range({ key: encode('\0'), range_end: encode('\0'), serializable }, 60_000, signal);
  }

  /** Returns the value of a key, now or at a revision. */
  async get(
    key: string,
    milliseconds = ANSWER_TIMEOUT_MS,
    at?: number,
  ): Promise<{ revision: number; kv: KeyValue | undefined }> {
    const then = at === undefined ? {} : { revision: String(at) };
    const { revision, kvs } = await this.#range({ key: encode(key), ...then }, milliseconds);
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
    const body = await this.#send('/v3/watch', { create_request: wanted }, signal);
    for await (const line of lines(body)) {
      const { result, error } = JSON.parse(line) as { result?: Body; error?: Body };
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
    const late = new AbortController();
    const over = signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]);
    using _timer = this.#clock.after(milliseconds, () =>
      late.abort(new EtcdError(4, `etcd has not answered ${path} for ${milliseconds / 1000} s`)),
    );
    try {
      const answer = await this.#send(path, body, over);
      const told = JSON.parse(await textOf(answer)) as Body;
      if (answer.statusCode !== 200) throw refusal(told);
      if (told.error !== undefined) throw refusal(told.error as Body);
      return told;
    } catch (error) {
      if (over.aborted) throw over.reason;
      if (GONE.some((code) => hasCode(error, code))) throw new EtcdError(14, 'etcd does not run');
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
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

  async #range(body: Body, milliseconds: number, signal?: AbortSignal): Promise<RangeAnswer> {
    const answer = await this.call('/v3/kv/range', body, milliseconds, signal);
    return { revision: revisionOf(answer), kvs: ((answer.kvs ?? []) as WireKeyValue[]).map(readKeyValue) };
  }
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

async function textOf(answer: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function sayingOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

const encode = (text: string): string => Buffer.from(text).toString('base64');
const decode = (text: string): string => Buffer.from(text, 'base64').toString();
