import { createHash, randomInt } from 'node:crypto';

import { type Ask, type CallerState, type LimitRules, LIMITS, type LimitStore, type Verdict } from '../types.ts';
import { Batch } from './batch.ts';
import { addEnd, addTime, hasEnds, type CallerHere, KnownCallers, takeEnds } from './callers.ts';
import { KnownRefusals } from './known-refusals.ts';
import type { Link } from './links/link.ts';
import type { Operation } from './operation.ts';
import { linkTo, type RedisStoreOptions, type Settings } from './options.ts';
import { NoAnswer, Patience } from './patience.ts';
import { SCRIPT } from './script.ts';
import { ENDS_SENT_WITHIN_MS, WaitingEnds } from './waiting-ends.ts';
import { decodeState, decodeVerdicts, encodeCall, FOREIGN, ForeignValue, isOurs, type MarkedVerdict } from './wire.ts';

const SCRIPT_SHA = createHash('sha1').update(SCRIPT).digest('hex');

/**
 * Requests that wait for a decision are spread over so many calls: while the server works on one, the next lies ready
 * there, and this process sees to the answers of another. With fewer they wait for each other in turn.
 */
const MOST_CALLS = 4;
/** So many operations are a call of their own while two are under way. */
const FEWEST_IN_CALL = 8;
const CALLS_TO_STAY_AWAKE = 3;
/** And only while answers come: a server that stands still is not looked for. */
const AWAKE_MS = 2;
/** A gateway that would refuse for requests of others asks again when it knows of all that have ended now. */
const ASK_AGAIN_MS = ENDS_SENT_WITHIN_MS + 50;
/** Where each caller is a call of its own, so many may be under way. */
const MOST_SINGLE_CALLS = 256;

/**
 * The counts in a Redis 7, for several gateways: each caller is one key, the server's clock counts, and what arrives
 * while a call is under way goes into the next one together.
 *
 * Nothing is queued for a server that is not there, and every wait has an end: a decision that does not come in time
 * rejects. It may still have been spent; never the other way round.
 */
export class RedisStore implements LimitStore {
  readonly #link: Link;
  readonly #options: Settings;
  readonly #gateway = randomInt(1, 2 ** 32 - 1);
  readonly #refusals: KnownRefusals | undefined;
  readonly #connected: Promise<unknown>;
  readonly #patience: Patience;
  readonly #renewal: NodeJS.Timeout;
  readonly #callers: KnownCallers;
  readonly #ends: WaitingEnds;
  #queue: Batch[] = [];
  /** Decisions that were asked for and not told. */
  #waiting = 0;
  /** Decisions that have come and were not told. */
  #answered: Operation[] = [];
  #telling = false;
  #calls = 0;
  #scheduled = false;
  #awake = false;
  #renewalDue = false;
  #rules: LimitRules | undefined;
  #clockOffsetMs = 0;
  #answeredAt = 0;
  /** There were troubles, and since then no answer; or none but refusals to work. */
  #troubled: 'lost' | 'refusing' | undefined;
  #idle: (() => void) | undefined;

  constructor(options: RedisStoreOptions) {
    const { prefix = 'gantry:', timeoutMs = 500, leaseSeconds = 30, now } = options;
    const { reportError = ignore, reportBack = ignore, cluster } = options;
    const batch = cluster === undefined ? (options.batch ?? 256) : 1;
    this.#options = { prefix, timeoutMs, leaseSeconds, batch, now, reportError, reportBack };
    this.#refusals = options.rememberRefusals === false ? undefined : new KnownRefusals();
    this.#callers = new KnownCallers(prefix);
    this.#ends = new WaitingEnds(batch, (caller) => this.#sendEnds(caller));
    this.#patience = new Patience(timeoutMs);
    this.#link = linkTo(options, {
      heard: () => this.#heard('lost'),
      troubled: (error) => this.#trouble(error),
    });
    this.#connected = this.#link.connect();
    this.#connected.catch((error: unknown) => this.#trouble(error));
    this.#renewal = setInterval(() => this.#renew(), (leaseSeconds * 1000) / 3).unref();
  }

  /** Resolves when the first connection is there. Until then every decision rejects. */
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
      const caller = this.#callers.find(ask.key);
      if (this.#isAway(caller)) {
        this.#troubled ??= 'lost';
        return reject(new Error('redis is not there'));
      }
      this.#waiting += 1;
      this.#add(caller, ask.rules, {
        kind: 'decision',
        count: 0,
        amount: 0,
        ask,
        resolve,
        reject,
      });
    });
  }

  release(ask: Ask, _ticket: number, cpuSeconds: number): void {
    const caller = this.#callers.find(ask.key);
    caller.underWay -= 1;
    addEnd(caller, ask.endpoint.graphql, cpuSeconds);
    // Near the limit the others should know at once, and without a server nobody can.
    if (caller.crowded || this.#isAway(caller)) this.#sendEnds(caller, ask.rules);
    else this.#ends.add(caller);
  }

  charge(ask: Ask, _ticket: number, cpuSeconds: number, points: number): void {
    const caller = this.#callers.find(ask.key);
    if (cpuSeconds > 0) {
      addTime(caller, ask.endpoint.graphql, cpuSeconds);
      this.#ends.add(caller);
    }
    if (points > 0 && !this.#isAway(caller))
      this.#add(caller, ask.rules, { kind: 'points', count: 0, amount: points, ask });
  }

  giveBack(ask: Ask): void {
    const caller = this.#callers.find(ask.key);
    caller.underWay -= 1;
    this.#refusals?.forget(ask.key);
    if (this.#isAway(caller)) caller.uncertain = true;
    else this.#add(caller, ask.rules, { kind: 'give-back', count: 0, amount: 0, ask });
  }

  async chargeContent(key: string, count: number, rules: LimitRules): Promise<void> {
    await this.#operate(key, rules, 'content', count);
  }

  async forget(key: string, rules: LimitRules): Promise<void> {
    await this.#operate(key, rules, 'forget', 0);
    await this.#patience.within(this.#link.publish(this.#forgotten, key));
  }

  onForgotten(listener: (key: string) => void): void {
    this.#link.subscribe(this.#forgotten, (key) => {
      this.#refusals?.forget(key);
      listener(key);
    });
  }

  async #operate(key: string, rules: LimitRules, kind: 'content' | 'forget', amount: number): Promise<void> {
    const caller = this.#callers.find(key);
    if (this.#isAway(caller)) throw new Error('redis is not there');
    const done = Promise.withResolvers<unknown>();
    this.#waiting += 1;
    this.#add(caller, rules, {
      kind,
      count: 0,
      amount,
      resolve: done.resolve,
      reject: done.reject,
    });
    await done.promise;
  }

  /** Told here to all processes: whose refusals are not to be remembered any more. */
  get #forgotten(): string {
    return `${this.#options.prefix}forgotten`;
  }

  async peek(key: string): Promise<CallerState> {
    this.#sendEnds(this.#callers.find(key)); // so that what was decided and ended before is seen
    this.#pump();
    const redisKey = this.#callers.redisKey(key);
    const value = await this.#patience.within(this.#link.send(redisKey, ['GET', redisKey]));
    if (value !== null && !isOurs(value)) throw new ForeignValue(redisKey);
    return decodeState(key, value, this.nowMs());
  }

  async *scan(): AsyncGenerator<CallerState> {
    const { prefix } = this.#options;
    const pages = this.#link.entries(`${escapeGlob(prefix)}{*}`);
    for (;;) {
      const { done, value: page } = await this.#patience.within(pages.next());
      if (done === true) return;
      for (const [key, value] of page) {
        if (value === null || !isOurs(value)) continue;
        const state = decodeState(key.slice(prefix.length + 1, -1), value, this.nowMs());
        if (state.windows.length > 0 || state.underWay > 0) yield state;
      }
    }
  }

  /** Sends what is left, as far as there is a server, and closes the connection. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#renewal);
    this.#ends.finish();
    this.#pump();
    if (this.#calls > 0 || this.#queue.length > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#idle = resolve;
      await promise;
    }
    this.#patience[Symbol.dispose]();
    this.#link[Symbol.dispose]();
  }

  #isAway({ redisKey }: CallerHere): boolean {
    return !this.#link.isThere(redisKey);
  }

  #trouble(error: unknown): void {
    this.#troubled ??= 'lost';
    this.#options.reportError(error);
  }

  /** Something has come from a server, however late; a script that was run ends all troubles. */
  #heard(ended: 'lost' | 'all'): void {
    this.#answeredAt = performance.now();
    if (this.#troubled === undefined || (ended === 'lost' && this.#troubled === 'refusing')) return;
    this.#troubled = undefined;
    this.#options.reportBack();
  }

  #sendEnds(caller: CallerHere, rules = this.#rules): void {
    if (rules === undefined || !hasEnds(caller)) return;
    if (!this.#isAway(caller)) return this.#add(caller, rules);
    // The lease runs out there, or the next renewal says how many are under way.
    takeEnds(caller);
    caller.uncertain = true;
  }

  /** Puts the ends that wait, and an operation after them, into the next call. */
  #add(caller: CallerHere, rules: LimitRules, operation?: Operation): void {
    this.#rules = rules;
    let batch = this.#queue.at(-1);
    if (batch === undefined || batch.rules !== rules || !batch.hasRoom(caller, this.#options.batch)) {
      batch = new Batch(rules);
      this.#queue.push(batch);
    }
    if (hasEnds(caller)) for (const end of takeEnds(caller)) batch.add(caller, end);
    if (operation !== undefined) batch.add(caller, operation);
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
    const single = this.#options.batch === 1;
    while (this.#calls < (single ? MOST_SINGLE_CALLS : MOST_CALLS)) {
      const batch = this.#queue[0];
      // A few operations among many that wait are no call of their own while two are under way.
      if (batch === undefined || (!single && this.#calls > 1 && batch.size < FEWEST_IN_CALL)) break;
      this.#queue.shift();
      if (batch.size === 0) continue; // a renewal took all of it
      this.#ends.goAlong(batch);
      void this.#send(batch);
    }
    this.#stayAwake();
    if (this.#calls === 0 && this.#queue.length === 0) this.#idle?.();
  }

  /**
   * While many calls are under way this process looks for their answers and does not sleep: to wake it costs the server
   * as much as two requests, and it comes late. Its other work goes on; with fewer calls another process may need the core.
   */
  #stayAwake(): void {
    if (this.#awake || this.#calls < CALLS_TO_STAY_AWAKE) return;
    if (performance.now() - this.#answeredAt > AWAKE_MS) return;
    this.#awake = true;
    setImmediate(() => {
      this.#awake = false;
      this.#stayAwake();
    });
  }

  async #send(batch: Batch): Promise<void> {
    this.#calls += 1;
    batch.begin();
    try {
      const sentAt = Date.now();
      const { nowMs, verdicts } = decodeVerdicts(await this.#patience.within(this.#call(batch)));
      if (this.#options.now === undefined) this.#clockOffsetMs = nowMs - (sentAt + Date.now()) / 2;
      this.#note(batch, verdicts);
    } catch (error) {
      this.#fail(batch, error);
    }
    batch.end();
    this.#calls -= 1;
    this.#pump();
    this.#tell();
  }

  /**
   * Tells requests their answers, so many in a turn as there are to a call.
   *
   * Who is told may ask again at once. All that are told together would ask together, and then server and process wait
   * for each other in turn; so what these ask is on its way before the next are told.
   */
  #tell(): void {
    if (this.#telling || this.#answered.length === 0) return;
    this.#telling = true;
    const told = this.#answered.splice(0, Math.max(1, Math.ceil(this.#waiting / MOST_CALLS)));
    this.#waiting -= told.length;
    for (const { resolve, reject, verdict, error } of told) {
      if (error === undefined) resolve?.(verdict ?? NO_VERDICT);
      else reject?.(error);
    }
    process.nextTick(() => {
      this.#pump(); // they have asked by now
      setImmediate(() => {
        this.#telling = false;
        this.#tell();
      });
    });
  }

  async #call(batch: Batch): Promise<Buffer> {
    const keys = batch.shares.map(({ caller }) => caller.redisKey);
    const [first = ''] = keys;
    if (!this.#link.isThere(first)) throw new Error('redis is not there');
    const { now, leaseSeconds } = this.#options;
    const args = [String(keys.length), ...keys, encodeCall(batch, now?.() ?? 0, this.#gateway, leaseSeconds)];
    let reply: Buffer | null;
    try {
      reply = await this.#link.send(first, ['EVALSHA', SCRIPT_SHA, ...args]);
    } catch (error) {
      // A server that was restarted does not know the script, and has not run it.
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      reply = await this.#link.send(first, ['EVAL', SCRIPT, ...args]);
    }
    if (reply === null) throw new Error('redis has answered nothing');
    this.#heard('all');
    return reply;
  }

  /** Remembers what was decided, before anything else is asked. */
  #note(batch: Batch, verdicts: readonly MarkedVerdict[]): void {
    let next = 0;
    for (const { caller, operations } of batch.shares) {
      for (const operation of operations) {
        const { ask, kind } = operation;
        if (kind === 'decision' || kind === 'content' || kind === 'forget') {
          const verdict = verdicts[next];
          next += 1;
          if (verdict === undefined) throw new Error('redis has answered less than it was asked');
          if (verdict.refusedBy === FOREIGN) operation.error = new ForeignValue(caller.redisKey);
          if (ask === undefined || operation.error !== undefined) {
            this.#answered.push(operation);
            continue;
          }
          if (verdict.refusedBy === CONCURRENT && verdict.crowded && operation.asked !== true) {
            this.#askAgain(operation);
            continue;
          }
          caller.crowded = verdict.crowded;
          if (verdict.refusedBy < 0) caller.underWay += 1;
          this.#refusals?.learn(ask, verdict);
          operation.verdict = verdict;
        }
        if (operation.resolve !== undefined) this.#answered.push(operation);
      }
    }
  }

  /** Of the requests for which this one is refused some are other gateways', and their ends may be on their way. */
  #askAgain(operation: Operation): void {
    operation.asked = true;
    setTimeout(() => {
      const { ask, reject } = operation;
      const caller = ask && this.#callers.find(ask.key);
      if (ask !== undefined && caller !== undefined && !this.#isAway(caller)) {
        return this.#add(caller, ask.rules, operation);
      }
      this.#waiting -= 1;
      reject?.(new Error('redis is not there'));
    }, ASK_AGAIN_MS);
  }

  #fail(batch: Batch, error: unknown): void {
    this.#troubled = error instanceof NoAnswer ? 'lost' : 'refusing';
    if (error instanceof NoAnswer) {
      this.#link.noAnswer(batch.shares[0]?.caller.redisKey ?? '');
      // Those that wait for their turn there would have to wait as long again.
      const waiting = this.#queue;
      this.#queue = waiting.filter(({ shares }) => shares.every(({ caller }) => !this.#isAway(caller)));
      for (const other of waiting) if (!this.#queue.includes(other)) this.#drop(other, error);
    }
    this.#drop(batch, error);
  }

  #drop(batch: Batch, error: unknown): void {
    for (const share of batch.shares) {
      const { caller, operations } = share;
      caller.uncertain = true;
      if (caller.share === share) caller.share = undefined;
      for (const { reject } of operations) {
        if (reject === undefined) continue;
        this.#waiting -= 1;
        reject(error);
      }
    }
  }

  #renew(): void {
    if (this.#rules === undefined || this.#toRenew().length === 0) return;
    this.#renewalDue = true;
    this.#pump();
  }

  #toRenew(): CallerHere[] {
    return this.#callers.toRenew().filter((caller) => !this.#isAway(caller));
  }

  /** Says how many requests each caller really has under way here. Its ends that still wait go before that. */
  #sendRenewal(): void {
    this.#renewalDue = false;
    const rules = this.#rules;
    if (rules === undefined) return;
    const callers = new Set(this.#toRenew());
    const ends = this.#queue.map((waiting) => waiting.takeEnds(callers));
    let batch = new Batch(rules);
    for (const caller of callers) {
      const before = [...ends.flatMap((taken) => taken.get(caller) ?? []), ...takeEnds(caller)];
      caller.uncertain = false;
      batch.put(caller, [...before, { kind: 'renewal', count: 0, amount: caller.underWay }]);
      if (batch.size < this.#options.batch) continue;
      void this.#send(batch);
      batch = new Batch(rules);
    }
    if (batch.size > 0) void this.#send(batch);
  }
}

const CONCURRENT = LIMITS.indexOf('concurrent');
const NO_VERDICT: Verdict = { refusedBy: -1, until: 0, shadowed: 0, used: 0, reset: 0, nowMs: 0, ticket: 0 };

function ignore(): void {}

function escapeGlob(text: string): string {
  return text.replace(/[\\*?[\]]/g, String.raw`\$&`);
}
