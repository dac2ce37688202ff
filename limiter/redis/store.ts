import { bitsOf, Endpoints } from '../endpoints.ts';
import type { LimitStore } from '../limit-store.ts';
import type { Ask, CallerState, Endpoint, LimitRules, Verdict } from '../types.ts';
import { type CallerHere, KnownCallers } from './callers.ts';
import { KnownRefusals } from './known-refusals.ts';
import type { RedisStoreOptions } from './options.ts';
import { Server } from './server.ts';
import {
  type Bounds,
  decodeState,
  type EncodedLimits,
  encodeContentLimits,
  encodeLimits,
  FOREIGN,
  ForeignValue,
  isOurs,
  type Operation,
} from './wire.ts';

export type { RedisStoreOptions } from './options.ts';

const NO_LIMITS = '';
const MAX_MICROS = 0x7f_ff_ff_ff;

/**
 * The counts in a Redis 7, for several gateways: each caller is one key, and each operation on it one call of a script, by
 * the server's clock. The client library sends calls of one turn together.
 *
 * Nothing is queued for a server that is away, and every wait has an end: a decision that does not come in time
 * rejects. It may still have been spent; never the other way round.
 */
export class RedisStore implements LimitStore {
  readonly endpoints = new Endpoints();
  readonly #prefix: string;
  readonly #server: Server;
  readonly #callers: KnownCallers;
  readonly #refusals: KnownRefusals | undefined;
  readonly #renewal: NodeJS.Timeout;
  /** The limits of each endpoint as the script reads them, under the rules of its last request. */
  readonly #limits: { endpoint: Endpoint; rules: LimitRules; encoded: EncodedLimits }[] = [];
  #calls = 0;
  #whenIdle: (() => void) | undefined;

  constructor(options: RedisStoreOptions) {
    const { prefix = 'gantry:', timeoutMs = 500, leaseSeconds = 30, now, rememberRefusals = true } = options;
    const { reportError = ignore, reportBack = ignore } = options;
    this.#prefix = prefix;
    this.#refusals = rememberRefusals ? new KnownRefusals() : undefined;
    this.#callers = new KnownCallers(prefix);
    const backAgain = (): void => {
      this.#refusals?.clear(); // a caller may have been forgiven while nothing was heard
      reportBack();
    };
    const reports = { reportError, reportBack: backAgain, reportSilence: () => this.#renewAll() };
    this.#server = new Server(options, { timeoutMs, leaseSeconds, ...reports, ...(now && { now }) });
    this.#renewal = setInterval(() => this.#renewAll(), (leaseSeconds * 1000) / 3).unref();
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
    const caller = this.#callers.find(ask.key);
    return caller.uncertain ? this.#decideLater(caller, ask) : this.#decide(caller, ask);
  }

  release({ key, endpoint, rules }: Ask, _ticket: number, cpuSeconds: number): void {
    const caller = this.#callers.find(key);
    caller.underWay -= 1;
    this.#change(
      caller,
      { kind: 'end', count: -1, micros: microsOf(cpuSeconds) },
      this.#limitsOf(endpoint, rules).time,
    );
  }

  charge({ key, endpoint, rules }: Ask, _ticket: number, cpuSeconds: number, points: number): void {
    const operation = { kind: 'change', count: 0, micros: microsOf(cpuSeconds), points } as const;
    this.#change(this.#callers.find(key), operation, this.#limitsOf(endpoint, rules).all);
  }

  giveBack({ key, endpoint, points, cost, rules }: Ask, _ticket: number, decidedMs: number): void {
    const caller = this.#callers.find(key);
    caller.underWay -= 1;
    this.#refusals?.forget(key);
    const spends = { quota: -cost, points: -points, content: -1, spentMs: decidedMs };
    this.#change(caller, { kind: 'change', count: -1, ...spends }, this.#limitsOf(endpoint, rules).all);
  }

  recount({ key, endpoint, rules }: Ask, _ticket: number, decidedMs: number, change: number): void {
    const operation = { kind: 'change', count: 0, quota: change, spentMs: decidedMs } as const;
    this.#change(this.#callers.find(key), operation, this.#limitsOf(endpoint, rules).all);
  }

  async chargeContent(key: string, count: number, rules: LimitRules): Promise<void> {
    const operation = { kind: 'change', count: 0, content: count } as const;
    await this.#call(this.#callers.find(key), operation, encodeContentLimits(rules));
  }

  async forget(key: string): Promise<void> {
    await this.#call(this.#callers.find(key), { kind: 'forget', count: 0 }, NO_LIMITS);
    await this.#server.publish(this.#forgotten, key);
  }

  onForgotten(listener: (key: string) => void): void {
    this.#server.subscribe(this.#forgotten, (key) => {
      this.#refusals?.forget(key);
      listener(key);
    });
  }

  async peek(key: string): Promise<CallerState> {
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

  /** Waits for the answers to all that was sent, and closes the connection. */
  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#renewal);
    if (this.#calls > 0) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#whenIdle = resolve;
      await this.#server.within(promise).catch(ignore); // a server that is silent
    }
    this.#server[Symbol.dispose]();
  }

  /** The channel that tells all processes whose refusals to forget. */
  get #forgotten(): string {
    return `${this.#prefix}forgotten`;
  }

  #decide(caller: CallerHere, ask: Ask): Promise<Verdict> {
    const { endpoint, points, cost, quota, rules } = ask;
    const spends = { quota: cost, points, content: endpoint.content ? 1 : 0 };
    const bounds = { quota, concurrent: rules.concurrent.limit, shadow: bitsOf(rules.shadow) | endpoint.shadow };
    const limits = this.#limitsOf(endpoint, rules).all;
    return this.#call(caller, { kind: 'decide', count: 1, ...spends }, limits, bounds, ask);
  }

  /** Decides when no call for this caller is under way, after its number of requests under way was set right. */
  async #decideLater(caller: CallerHere, ask: Ask): Promise<Verdict> {
    while (caller.uncertain && caller.calls > 0) {
      await this.#server.within(new Promise<void>((resolve) => caller.waiting.push(resolve)));
    }
    if (caller.uncertain && !this.#server.isAway(caller)) this.#renew(caller);
    return await this.#decide(this.#callers.find(ask.key), ask);
  }

  /** Tells the server what has happened here. Without a server the next renewal says how many requests are under way. */
  #change(caller: CallerHere, operation: Operation, limits: string): void {
    if (this.#server.isAway(caller)) {
      caller.uncertain = true;
      return;
    }
    // A renewal that is to come has the number without this request.
    const sent = caller.uncertain ? { ...operation, count: 0 } : operation;
    caller.calls += 1;
    this.#calls += 1;
    this.#server.tell(caller, sent, limits).then(
      () => this.#endCall(caller),
      () => this.#failCall(caller, true),
    );
  }

  async #call(caller: CallerHere, operation: Operation, limits: string, bounds?: Bounds, ask?: Ask): Promise<Verdict> {
    if (this.#server.isAway(caller)) {
      this.#server.noteMissed();
      throw new Error('redis is not connected');
    }
    caller.calls += 1;
    this.#calls += 1;
    try {
      const verdict = await this.#server.run(caller, operation, limits, bounds);
      if (verdict.refusedBy === FOREIGN) throw new ForeignValue(caller.redisKey);
      if (ask !== undefined) {
        if (verdict.refusedBy < 0) caller.underWay += 1;
        if (ask.rules.costsChange !== true) this.#refusals?.learn(ask, verdict);
      }
      this.#endCall(caller);
      return verdict;
    } catch (error) {
      if (error instanceof ForeignValue) this.#endCall(caller);
      else this.#failCall(caller, operation.kind !== 'renew');
      throw error;
    }
  }

  /** The server may have run this call or not. */
  #failCall(caller: CallerHere, renewalDue: boolean): void {
    caller.uncertain = true;
    caller.renewalDue = renewalDue;
    this.#endCall(caller);
  }

  #endCall(caller: CallerHere): void {
    caller.calls -= 1;
    this.#calls -= 1;
    if (caller.calls === 0) this.#settle(caller);
    if (this.#calls === 0) this.#whenIdle?.();
  }

  /** No call for this caller is under way: this process knows all that the server knows. */
  #settle(caller: CallerHere): void {
    if (caller.renewalDue && !this.#server.isAway(caller)) this.#renew(caller);
    if (caller.waiting.length > 0) for (const proceed of caller.waiting.splice(0)) proceed();
  }

  /** Renews all leases, three times in each. That of a caller with calls under way follows their answers. */
  #renewAll(): void {
    for (const caller of this.#callers.toRenew()) {
      if (this.#server.isAway(caller)) continue;
      if (caller.calls === 0) this.#renew(caller);
      else caller.uncertain = caller.renewalDue = true;
    }
  }

  /** Says how many requests this caller really has under way here. */
  #renew(caller: CallerHere): void {
    caller.uncertain = false;
    caller.renewalDue = false;
    this.#call(caller, { kind: 'renew', count: caller.underWay }, NO_LIMITS).catch(ignore); // noted in the caller
  }

  #limitsOf(endpoint: Endpoint, rules: LimitRules): EncodedLimits {
    const known = this.#limits[endpoint.id];
    if (known?.endpoint === endpoint && known.rules === rules) return known.encoded;
    const encoded = encodeLimits(endpoint, rules, this.endpoints);
    this.#limits[endpoint.id] = { endpoint, rules, encoded };
    return encoded;
  }
}

function microsOf(cpuSeconds: number): number {
  return Math.min(MAX_MICROS, Math.round(cpuSeconds * 1e6));
}

function ignore(): void {}
