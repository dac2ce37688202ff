import { createHash, randomInt } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';

import { createClient, RESP_TYPES } from '@redis/client';

import type { Ask, CallerState, LimitRules, LimitStore, Verdict } from '../types.ts';
import { Batch } from './batch.ts';
import { KnownRefusals } from './known-refusals.ts';
import { SCRIPT } from './script.ts';
import { decodeState, decodeVerdicts, encodeHeader, encodeOperations, type Operation } from './wire.ts';

const SCRIPT_SHA = createHash('sha1').update(SCRIPT).digest('hex');

/** Calls of the script under way at once: one is worked on while the next is on its way. */
const MOST_CALLS = 2;
/** So many answers are told at once without a thought; of more, half of them first. */
const FEW_ANSWERS = 16;
/** What is asked in one turn is taken up in the next and written in the one after that. */
const TURNS_UNTIL_WRITTEN = 3;
/** After a call without an answer the server is left alone this long, and requests are told at once. */
const PAUSE_MS = 1000;
const SCAN_PAGE = 500;

export type RedisStoreOptions = Readonly<{
  /** `redis://…`, `rediss://…`, or the path of a socket. */
  url: string;
  /** Begins every key. */
  prefix?: string;
  /** A request waits no longer than this for its decision. */
  timeoutMs?: number;
  /** Requests under way in a gateway that was killed count for this long. */
  leaseSeconds?: number;
  /** Requests decided in one call at most; 1 where a proxy spreads keys over several servers. */
  batch?: number;
  /** Answer refusals that are certain until a reset without asking the server. Default true. */
  rememberRefusals?: boolean;
  /** Epoch milliseconds, for tests. Default: the server's clock. */
  now?: () => number;
  /** Told about the connection's troubles; requests are answered all the same. */
  reportError?: (error: unknown) => void;
}>;

/**
 * The counts in a Redis 7, for several gateways: each caller is one key, the server's clock counts, and what arrives
 * while a call is under way goes into the next one together.
 *
 * Nothing is queued for a server that is not there, and every wait has an end: a decision that does not come in time
 * rejects. It may still have been spent; never the other way round.
 */
export class RedisStore implements LimitStore {
  readonly #client: ReturnType<typeof connectTo>;
  readonly #options: Required<Omit<RedisStoreOptions, 'now' | 'url' | 'rememberRefusals'>> &
    Pick<RedisStoreOptions, 'now'>;
  readonly #gateway = randomInt(1, 2 ** 32 - 1);
  readonly #refusals: KnownRefusals | undefined;
  readonly #connected: Promise<unknown>;
  readonly #renewal: NodeJS.Timeout;
  /** Requests of each caller that this gateway has under way. */
  readonly #underWay = new Map<string, number>();
  /** Callers of whom a decision got lost: it may have been counted as under way. */
  readonly #uncertain = new Set<string>();
  #queue: Batch[] = [];
  /** Operations whose callers do not know the answer yet. */
  #answered: Operation[] = [];
  #telling = false;
  #calls = 0;
  #scheduled = false;
  #renewalDue = false;
  #rules: LimitRules | undefined;
  #clockOffsetMs = 0;
  #resumeAt = 0;
  #idle: (() => void) | undefined;

  constructor(options: RedisStoreOptions) {
    const { prefix = 'gantry:', timeoutMs = 250, leaseSeconds = 30, batch = 256, now, reportError } = options;
    this.#options = { prefix, timeoutMs, leaseSeconds, batch, now, reportError: reportError ?? (() => undefined) };
    this.#refusals = options.rememberRefusals === false ? undefined : new KnownRefusals();
    this.#client = connectTo(options.url);
    this.#client.on('error', (error) => this.#options.reportError(error));
    this.#connected = this.#client.connect();
    this.#connected.catch((error: unknown) => this.#options.reportError(error));
    this.#renewal = setInterval(() => this.#renew(), (leaseSeconds * 1000) / 3).unref();
  }

  /** Resolves when the first connection is there. A gateway need not wait for it. */
  async ready(): Promise<void> {
    await this.#connected;
  }

  nowMs(): number {
    return this.#options.now?.() ?? Date.now() + this.#clockOffsetMs;
  }

  decide(ask: Ask): Verdict | Promise<Verdict> {
    const known = this.#refusals?.find(ask, this.nowMs());
    if (known !== undefined) return known;
    return new Promise((resolve, reject) => {
      if (this.#isAway()) return reject(new Error('redis is not there'));
      this.#add(ask.key, ask.rules, { kind: 'decide', ask, amount: 0, resolve, reject });
    });
  }

  release(ask: Ask, _ticket: number, cpuSeconds: number): void {
    this.#countUnderWay(ask.key, -1);
    // Without a server the lease runs out there; afterwards the next renewal says how many there are.
    if (this.#isAway()) return void this.#uncertain.add(ask.key);
    this.#add(ask.key, ask.rules, {
      kind: 'release',
      ask,
      amount: Math.min(0x7f_ff_ff_ff, Math.round(cpuSeconds * 1e6)),
    });
  }

  async chargeContent(key: string, count: number, rules: LimitRules): Promise<void> {
    if (this.#isAway()) throw new Error('redis is not there');
    const done = Promise.withResolvers<unknown>();
    this.#add(key, rules, { kind: 'content', amount: count, resolve: done.resolve, reject: done.reject });
    await done.promise;
  }

  async peek(key: string): Promise<CallerState> {
    this.#pump(); // so that what was decided before is seen
    const value = await this.#withinTime(this.#client.get(this.#keyOf(key)));
    return decodeState(key, value, this.nowMs());
  }

  async *scan(): AsyncGenerator<CallerState> {
    const { prefix } = this.#options;
    let cursor = '0';
    do {
      const page = await this.#withinTime(
        this.#client.scan(Buffer.from(cursor), { MATCH: `${escapeGlob(prefix)}{*}`, COUNT: SCAN_PAGE }),
      );
      cursor = page.cursor.toString();
      if (page.keys.length === 0) continue;
      const values = await this.#withinTime(this.#client.mGet(page.keys));
      for (const [index, key] of page.keys.entries()) {
        const state = decodeState(key.toString().slice(prefix.length + 1, -1), values[index] ?? null, this.nowMs());
        if (state.windows.length > 0 || state.underWay > 0) yield state;
      }
    } while (cursor !== '0');
  }

  /** Sends what is left, as far as there is a server, and closes the connection. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#renewal);
    if (this.#calls > 0 || this.#queue.length > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#idle = resolve;
      await promise;
    }
    this.#client.destroy();
  }

  #isAway(): boolean {
    return !this.#client.isReady || performance.now() < this.#resumeAt;
  }

  /** The braces make the caller's name alone decide where the key lives. */
  #keyOf(key: string): string {
    return `${this.#options.prefix}{${key}}`;
  }

  #add(key: string, rules: LimitRules, operation: Operation): void {
    this.#rules = rules;
    let batch = this.#queue.at(-1);
    if (batch === undefined || batch.rules !== rules || !batch.hasRoom(key, this.#options.batch)) {
      batch = new Batch(rules);
      this.#queue.push(batch);
    }
    batch.add(key, operation);
    if (this.#scheduled) return;
    this.#scheduled = true;
    // After everything that has arrived in this turn: requests that came together are decided together.
    setImmediate(() => {
      this.#scheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    if (this.#renewalDue) {
      if (this.#calls > 0) return; // what is under way there must be known here, or the renewal would be wrong
      this.#sendRenewal();
    }
    while (this.#calls < MOST_CALLS) {
      const batch = this.#queue.shift();
      if (batch === undefined) break;
      if (batch.size === 0) continue; // a renewal took all of it
      void this.#send(batch);
    }
    if (this.#calls === 0 && this.#queue.length === 0) this.#idle?.();
  }

  async #send(batch: Batch): Promise<void> {
    this.#calls += 1;
    try {
      const sentAt = Date.now();
      const { nowMs, verdicts } = decodeVerdicts(await this.#withinTime(this.#call(batch)));
      if (this.#options.now === undefined) this.#clockOffsetMs = nowMs - (sentAt + Date.now()) / 2;
      this.#note(batch, verdicts);
    } catch (error) {
      this.#fail(batch, error);
    }
    this.#calls -= 1;
    this.#pump();
    await this.#tell(batch);
  }

  /**
   * Tells requests their answers.
   *
   * Many that are told at once ask again at once, and then server and client wait for each other in turn. So what half
   * of them ask is on its way before the other half is told: from then on both sides work at the same time.
   */
  async #tell(batch: Batch): Promise<void> {
    for (const operation of batch.operations()) {
      if (operation.resolve !== undefined) this.#answered.push(operation);
    }
    if (this.#telling) return;
    this.#telling = true;
    while (this.#answered.length > 0) {
      const count = this.#answered.length;
      const told = this.#answered.splice(0, count > FEW_ANSWERS ? Math.ceil(count / 2) : count);
      for (const { resolve, verdict } of told) resolve?.(verdict ?? NO_VERDICT);
      if (told.length < FEW_ANSWERS / 2) continue;
      for (let turn = 0; turn < TURNS_UNTIL_WRITTEN; turn += 1) await nextTurn();
    }
    this.#telling = false;
  }

  async #call(batch: Batch): Promise<Buffer> {
    if (!this.#client.isReady) throw new Error('redis is not there');
    const { now, leaseSeconds } = this.#options;
    const keys = Array.from(batch.callers.keys(), (key) => this.#keyOf(key));
    const args = [
      encodeHeader(batch.rules, now?.() ?? 0, this.#gateway, leaseSeconds),
      encodeOperations(batch.callers.values(), batch.size, keys.length),
    ];
    try {
      return await this.#client.sendCommand<Buffer>(['EVALSHA', SCRIPT_SHA, String(keys.length), ...keys, ...args]);
    } catch (error) {
      // A server that was restarted does not know the script, and has not run it.
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return await this.#client.sendCommand<Buffer>(['EVAL', SCRIPT, String(keys.length), ...keys, ...args]);
    }
  }

  /** Remembers what was decided, before anything else is asked. */
  #note(batch: Batch, verdicts: readonly Verdict[]): void {
    let next = 0;
    for (const operation of batch.operations()) {
      const { kind, ask } = operation;
      if (kind !== 'decide' || ask === undefined) continue;
      const verdict = verdicts[next];
      next += 1;
      if (verdict === undefined) throw new Error('redis has answered less than it was asked');
      if (verdict.refusedBy < 0) this.#countUnderWay(ask.key, 1);
      this.#refusals?.learn(ask, verdict);
      operation.verdict = verdict;
    }
  }

  #fail(batch: Batch, error: unknown): void {
    if (error instanceof NoAnswer) this.#resumeAt = performance.now() + PAUSE_MS;
    for (const key of batch.callers.keys()) this.#uncertain.add(key);
    for (const { reject } of batch.operations()) reject?.(error);
  }

  #countUnderWay(key: string, change: 1 | -1): void {
    const count = (this.#underWay.get(key) ?? 0) + change;
    if (count > 0) this.#underWay.set(key, count);
    else this.#underWay.delete(key);
  }

  #renew(): void {
    if (this.#isAway() || this.#rules === undefined) return;
    if (this.#underWay.size === 0 && this.#uncertain.size === 0) return;
    this.#renewalDue = true;
    this.#pump();
  }

  /** Says how many requests each caller really has under way here. Its endings that still wait go before that. */
  #sendRenewal(): void {
    this.#renewalDue = false;
    const rules = this.#rules;
    if (rules === undefined) return;
    const keys = new Set([...this.#underWay.keys(), ...this.#uncertain]);
    this.#uncertain.clear();
    let batch = new Batch(rules);
    for (const key of keys) {
      for (const waiting of this.#queue) {
        for (const ending of waiting.takeReleases(key)) batch.add(key, ending);
      }
      batch.add(key, { kind: 'renew', amount: this.#underWay.get(key) ?? 0 });
      if (batch.hasRoom('', this.#options.batch)) continue;
      void this.#send(batch);
      batch = new Batch(rules);
    }
    if (batch.size > 0) void this.#send(batch);
  }

  async #withinTime<T>(answer: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    const { timeoutMs } = this.#options;
    const timer = setTimeout(() => reject(new NoAnswer(`redis has not answered in ${timeoutMs} ms`)), timeoutMs);
    answer.catch(() => undefined); // it may fail after nobody waits for it any more
    try {
      return await Promise.race([answer, promise]);
    } finally {
      clearTimeout(timer);
    }
  }
}

class NoAnswer extends Error {}

const NO_VERDICT: Verdict = { refusedBy: -1, until: 0, shadowed: 0, used: 0, reset: 0, nowMs: 0, ticket: 0 };

function reconnectStrategy(attempts: number): number {
  return Math.min(50 * 2 ** attempts, 1000);
}

function connectTo(url: string) {
  const socket = url.startsWith('/')
    ? { path: url, reconnectStrategy, connectTimeout: 2000 }
    : { reconnectStrategy, connectTimeout: 2000 };
  return createClient({
    ...(url.startsWith('/') ? {} : { url }),
    socket,
    disableOfflineQueue: true,
    commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
  }).withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
}

function escapeGlob(text: string): string {
  return text.replace(/[\\*?[\]]/g, String.raw`\$&`);
}
