import { Endpoints } from '../endpoints.ts';
import type { LimitStore } from '../limit-store.ts';
import { type Ask, type CallerState, type LimitRules, LIMITS, type Verdict } from '../types.ts';
import { Answers } from './answers.ts';
import type { Batch } from './batch.ts';
import { addEnd, addTime, hasEnds, type CallerHere, KnownCallers, takeEnds } from './callers.ts';
import { Calls, MIN_CALL_SIZE, MAX_CALLS } from './calls.ts';
import { KnownRefusals } from './known-refusals.ts';
import { hasVerdict, type Operation } from './operation.ts';
import type { RedisStoreOptions } from './options.ts';
import { Renewal } from './renewal.ts';
import { Server } from './server.ts';
import { ENDS_SENT_WITHIN_MS, WaitingEnds } from './waiting-ends.ts';
import { decodeState, FOREIGN, ForeignValue, isOurs, type MarkedVerdict } from './wire.ts';

/** After this a gateway that would refuse for requests of others asks again: all ends up to now have been sent. */
const ASK_AGAIN_MS = ENDS_SENT_WITHIN_MS + 50;
const CONCURRENT = LIMITS.indexOf('concurrent');

/**
 * The counts in a Redis 7, for several gateways: each caller is one key, the server's clock counts, and what arrives
 * while a call is under way goes into the next one together.
 *
 * Nothing is queued for a server that is away, and every wait has an end: a decision that does not come in time
 * rejects. It may still have been spent; never the other way round.
 */
export class RedisStore implements LimitStore {
  readonly endpoints = new Endpoints();
  readonly #prefix: string;
  readonly #server: Server;
  readonly #calls: Calls;
  readonly #answers: Answers;
  readonly #callers: KnownCallers;
  readonly #ends: WaitingEnds;
  readonly #renewal: Renewal;
  readonly #refusals: KnownRefusals | undefined;
  #rules: LimitRules | undefined;

  constructor(options: RedisStoreOptions) {
    const { prefix = 'gantry:', timeoutMs = 500, leaseSeconds = 30, now, rememberRefusals = true } = options;
    const { reportError = ignore, reportBack = ignore, cluster } = options;
    const most = cluster === undefined ? (options.batch ?? 256) : 1;
    this.#prefix = prefix;
    this.#refusals = rememberRefusals ? new KnownRefusals() : undefined;
    this.#callers = new KnownCallers(prefix);
    this.#ends = new WaitingEnds(most, (caller) => this.#sendEnds(caller));
    const reportSilence = (): void => this.#renewal.renew();
    const reports = { reportError, reportBack, reportSilence };
    this.#server = new Server(options, { timeoutMs, leaseSeconds, ...reports, ...(now && { now }) });
    this.#calls = new Calls(this.#server, most, {
      leaves: (batch) => this.#ends.goAlong(batch),
      decided: (batch, verdicts) => this.#note(batch, verdicts),
      failed: (batch, error) => this.#drop(batch, error),
      over: () => this.#answers.tell(),
      onlyWaits: () => this.#answers.askedAtOnce,
    });
    this.#answers = new Answers(MAX_CALLS, MIN_CALL_SIZE, () => this.#calls.pump());
    const rules = (): LimitRules | undefined => this.#rules;
    this.#renewal = new Renewal(this.#callers, this.#server, this.#calls, { leaseSeconds, most, rules });
  }

  /** Resolves when the first connection is there. Until then every decision rejects. */
  async ready(): Promise<void> {
    await this.#server.ready();
  }

  nowMs(): number {
    return this.#server.nowMs();
  }

  decide(ask: Ask): Verdict | Promise<Verdict> {
    const known = this.#refusals?.find(ask, this.nowMs());
    if (known !== undefined) return known;
    return new Promise((resolve, reject) => {
      const caller = this.#callers.find(ask.key);
      if (this.#server.isAway(caller)) {
        this.#server.noteMissed();
        return reject(new Error('redis is not there'));
      }
      this.#answers.expect();
      this.#add(caller, ask.rules, { kind: 'decision', count: 0, amount: 0, ask, resolve, reject });
    });
  }

  release(ask: Ask, _ticket: number, cpuSeconds: number): void {
    const caller = this.#callers.find(ask.key);
    caller.underWay -= 1;
    addEnd(caller, ask.endpoint.graphql, cpuSeconds);
    // Near the limit other gateways should know at once; without a server ends are dropped.
    if (caller.crowded || this.#server.isAway(caller)) this.#sendEnds(caller, ask.rules);
    else this.#ends.add(caller);
  }

  charge(ask: Ask, _ticket: number, cpuSeconds: number, points: number): void {
    const caller = this.#callers.find(ask.key);
    if (cpuSeconds > 0) {
      addTime(caller, ask.endpoint.graphql, cpuSeconds);
      this.#ends.add(caller);
    }
    if (points > 0 && !this.#server.isAway(caller))
      this.#add(caller, ask.rules, { kind: 'points', count: 0, amount: points, ask });
  }

  giveBack(ask: Ask): void {
    const caller = this.#callers.find(ask.key);
    caller.underWay -= 1;
    this.#refusals?.forget(ask.key);
    if (this.#server.isAway(caller)) caller.uncertain = true;
    else this.#add(caller, ask.rules, { kind: 'give-back', count: 0, amount: 0, ask });
  }

  async chargeContent(key: string, count: number, rules: LimitRules): Promise<void> {
    await this.#operate(key, rules, 'content', count);
  }

  async forget(key: string, rules: LimitRules): Promise<void> {
    await this.#operate(key, rules, 'forget', 0);
    await this.#server.publish(this.#forgotten, key);
  }

  onForgotten(listener: (key: string) => void): void {
    this.#server.subscribe(this.#forgotten, (key) => {
      this.#refusals?.forget(key);
      listener(key);
    });
  }

  async peek(key: string): Promise<CallerState> {
    this.#sendEnds(this.#callers.find(key)); // so that what was decided and ended before is seen
    this.#calls.pump();
    const redisKey = this.#callers.redisKey(key);
    const value = await this.#server.value(redisKey);
    if (value !== null && !isOurs(value)) throw new ForeignValue(redisKey);
    return decodeState(key, value, this.nowMs(), this.endpoints);
  }

  async *scan(): AsyncGenerator<CallerState> {
    for await (const page of this.#server.entries(this.#prefix)) {
      for (const [key, value] of page) {
        if (value === null || !isOurs(value)) continue;
        const state = decodeState(key.slice(this.#prefix.length + 1, -1), value, this.nowMs(), this.endpoints);
        if (state.windows.length > 0 || state.underWay > 0) yield state;
      }
    }
  }

  /** Sends what is left, as far as there is a server, and closes the connection. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#renewal[Symbol.dispose]();
    this.#ends.finish();
    await this.#calls.drained();
    this.#server[Symbol.dispose]();
  }

  /** The channel that tells all processes whose refusals to forget. */
  get #forgotten(): string {
    return `${this.#prefix}forgotten`;
  }

  async #operate(key: string, rules: LimitRules, kind: 'content' | 'forget', amount: number): Promise<void> {
    const caller = this.#callers.find(key);
    if (this.#server.isAway(caller)) throw new Error('redis is not there');
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#answers.expect();
    this.#add(caller, rules, { kind, count: 0, amount, resolve, reject });
    await promise;
  }

  #add(caller: CallerHere, rules: LimitRules, operation?: Operation): void {
    this.#rules = rules;
    this.#calls.add(caller, rules, operation);
  }

  #sendEnds(caller: CallerHere, rules = this.#rules): void {
    if (rules === undefined || !hasEnds(caller)) return;
    if (!this.#server.isAway(caller)) return this.#add(caller, rules);
    // The lease runs out there, or the next renewal says how many are under way.
    takeEnds(caller);
    caller.uncertain = true;
  }

  /** Remembers what was decided, before anything else is asked. */
  #note(batch: Batch, verdicts: readonly MarkedVerdict[]): void {
    let next = 0;
    for (const { caller, operations } of batch.shares) {
      for (const operation of operations) {
        if (!hasVerdict(operation)) continue;
        const verdict = verdicts[next];
        next += 1;
        if (verdict === undefined) throw new Error('redis has answered fewer operations than it was sent');
        if (verdict.refusedBy === FOREIGN) operation.error = new ForeignValue(caller.redisKey);
        else if (operation.ask !== undefined) {
          if (verdict.refusedBy === CONCURRENT && verdict.crowded && operation.asked !== true) {
            this.#askAgain(operation);
            continue;
          }
          this.#noteVerdict(caller, operation.ask, verdict);
          operation.verdict = verdict;
        }
        this.#answers.add(operation);
      }
    }
  }

  #noteVerdict(caller: CallerHere, ask: Ask, verdict: MarkedVerdict): void {
    caller.crowded = verdict.crowded;
    if (verdict.refusedBy < 0) caller.underWay += 1;
    this.#refusals?.learn(ask, verdict);
  }

  /** This request is refused because of others, some of them other gateways', whose ends may be on their way. */
  #askAgain(operation: Operation): void {
    operation.asked = true;
    setTimeout(() => {
      const { ask } = operation;
      const caller = ask && this.#callers.find(ask.key);
      if (ask !== undefined && caller !== undefined && !this.#server.isAway(caller)) {
        return this.#add(caller, ask.rules, operation);
      }
      this.#answers.reject(operation, new Error('redis is not there'));
    }, ASK_AGAIN_MS);
  }

  #drop(batch: Batch, error: unknown): void {
    for (const share of batch.shares) {
      const { caller, operations } = share;
      caller.uncertain = true;
      if (caller.share === share) caller.share = undefined;
      for (const operation of operations) this.#answers.reject(operation, error);
    }
  }
}

function ignore(): void {}
