import { AdmittedRequest, NOTHING_SHADOWED, type Origin } from './decision/admitted-request.ts';
import { LimitedCallers } from './decision/limited.ts';
import { type LimiterCounts, newCounts } from './decision/limiter-counts.ts';
import { RunningRequests, type Stopwatch } from './decision/running.ts';
import { openStatusOf, rateStatus, statusOf } from './decision/shown-limits.ts';
import { WorkingTime } from './decision/working-time.ts';
import { countedEndpoint, limitsIn } from './endpoints.ts';
import { endOfHour } from './hour.ts';
import type { LimitStore } from './limit-store.ts';
import { MemoryStore } from './memory/store.ts';
import { defaultRules } from './rules.ts';
import {
  type Ask,
  type Caller,
  type CallerState,
  CATEGORIES,
  type Category,
  type Decision,
  type Endpoint,
  type EndpointDefinition,
  type LimitedCaller,
  type LimitName,
  type LimitRules,
  LIMITS,
  type Refusal,
  type RefusalNote,
  type ShownStatus,
  type Verdict,
} from './types.ts';
import { countedWindows } from './window-form.ts';

export type RateLimiterOptions = Readonly<{
  /** Default: in the memory of this process. The limiter disposes it. */
  store?: LimitStore;
  /** From `limitRules`. Default: the specification's numbers. */
  rules?: LimitRules;
  /** The rules of single callers, by their keys. */
  overrides?: ReadonlyMap<string, LimitRules>;
  /**
   * When the store does not answer: `closed` refuses (503, the default), `open` lets this process count by itself
   * until the store is back, so that even then nobody has more than one quota per process.
   */
  onStoreFailure?: 'open' | 'closed';
  /** Called for each request for which the store did not answer. */
  reportFailure?: (error: unknown) => void;
  /** Called for each request that a limit in shadow mode would have refused. */
  reportShadow?: (limit: LimitName, caller: Caller, endpoint: Endpoint) => void;
  /** Called for each refusal where a ban is configured; other processes take it in with `noteRefusal`. */
  reportRefusal?: (note: RefusalNote) => void;
  /** For tests: how the time of requests is taken. */
  time?: Stopwatch;
}>;

const nothingToEnd = { end: () => undefined, [Symbol.dispose]: () => undefined };

const NO_OVERRIDES: ReadonlyMap<string, LimitRules> = new Map();

/**
 * Decides which requests pass: all limits in one step, all or nothing. A refused request has spent nothing.
 *
 * Windows are fixed. They start with a caller's first request and end at a whole second, so that a client that waits
 * exactly until `reset` is admitted.
 */
export class RateLimiter implements AsyncDisposable {
  readonly counts: LimiterCounts = newCounts();
  readonly #store: LimitStore;
  readonly #origin: Origin;
  readonly #onStoreFailure: 'open' | 'closed';
  readonly #reportFailure: (error: unknown) => void;
  readonly #reportShadow: (limit: LimitName, caller: Caller, endpoint: Endpoint) => void;
  readonly #reportRefusal: ((note: RefusalNote) => void) | undefined;
  readonly #limited = new LimitedCallers();
  readonly #running: RunningRequests;
  /** Counts for `onStoreFailure: 'open'`. */
  #own: MemoryStore | undefined;
  #rules: LimitRules;
  #overrides: ReadonlyMap<string, LimitRules>;

  constructor(options: RateLimiterOptions = {}) {
    this.#store = options.store ?? new MemoryStore();
    this.#running = new RunningRequests(options.time ?? new WorkingTime());
    this.#origin = { store: this.#store, counts: this.counts, running: this.#running, unchecked: false };
    this.#rules = options.rules ?? defaultRules;
    this.#nameWindows();
    this.#overrides = options.overrides ?? NO_OVERRIDES;
    this.#onStoreFailure = options.onStoreFailure ?? 'closed';
    this.#reportFailure = options.reportFailure ?? (() => undefined);
    this.#reportShadow = options.reportShadow ?? (() => undefined);
    this.#reportRefusal = options.reportRefusal;
    this.#store.onForgotten?.((key) => this.noteForgiven(key));
  }

  get rules(): LimitRules {
    return this.#rules;
  }

  /** Puts other rules in force. Counts stay; a window that is open keeps its end unless the new one is shorter. */
  changeRules(rules: LimitRules, overrides: ReadonlyMap<string, LimitRules> = NO_OVERRIDES): void {
    this.#rules = rules;
    this.#overrides = overrides;
    this.#nameWindows();
  }

  /**
   * Makes a route known, once at start or reload. The same name means the same counts of points. It belongs to this
   * limiter: `admit` of a limiter with another store throws a `TypeError`.
   */
  endpoint(definition: EndpointDefinition): Endpoint {
    return this.#store.endpoints.define(definition);
  }

  /**
   * May this request pass? The answer comes at once from memory and SQLite, later from Redis; it never rejects.
   *
   * `points` other than the endpoint's own are for GraphQL: 1 for a query, 5 with a mutation. `cost` is for several
   * requests that are decided as one: all of them or none.
   */
  admit(caller: Caller, endpoint: Endpoint, points = endpoint.points, cost = 1): Decision | Promise<Decision> {
    // The number of a foreign endpoint names another one's windows here.
    if (endpoint.of !== this.#store.endpoints) throw new TypeError(`${endpoint.name} is an endpoint of another store`);
    const rules = this.#overrides.size === 0 ? this.#rules : (this.#overrides.get(caller.key) ?? this.#rules);
    const counted = countedEndpoint(endpoint, rules);
    if (rules.ban !== undefined && this.#limited.size > 0) {
      const banned = this.#banned(caller, counted);
      if (banned !== undefined) return banned;
    }
    const request = new AdmittedRequest(caller, counted, points, cost, rules, this.#origin);
    const verdict = this.#store.decide(request);
    if (verdict instanceof Promise) return this.#later(verdict, request);
    return this.#decision(verdict, request);
  }

  /** The state of each of a caller's categories, for `GET /rate_limit`; one that is off has core's. Changes nothing. */
  async status(caller: Caller): Promise<Record<Category, ShownStatus>> {
    const { windows } = this.#counted(await this.#peek(caller.key));
    const open = new Map(windows.map((window) => [window.name, window]));
    const nowSeconds = Math.floor(this.#store.nowMs() / 1000);
    const still = open.get('core')?.reset ?? endOfHour(nowSeconds);
    const entries = CATEGORIES.map((category): [Category, ShownStatus] => {
      const counted = this.#rules.categories[category].limit === 'off' ? 'core' : category;
      return [category, openStatusOf(this.#rules, caller, counted, open, still)];
    });
    return Object.fromEntries(entries) as Record<Category, ShownStatus>;
  }

  /** Counts content that the caller created elsewhere, in the web interface. It has happened, so it is never refused. */
  async chargeContent(caller: Pick<Caller, 'key'>, count = 1): Promise<void> {
    try {
      await this.#store.chargeContent(caller.key, count, this.#rules);
    } catch (error) {
      this.#reportFailure(error);
    }
  }

  /** Forgets what a caller spent, and its ban, in all processes that share the store. Rejects when the store is silent. */
  async forgive(key: string): Promise<void> {
    await this.#store.forget(key, this.#rules);
    this.noteForgiven(key);
  }

  /** Records that another process has forgiven this caller. */
  noteForgiven(key: string): void {
    this.#limited.forget(key);
    this.#own?.forget(key);
  }

  /** Lists the limited callers, their limits and the time: the callers that this process has refused. */
  explain(): LimitedCaller[] {
    return this.#limited.list(Math.floor(this.#store.nowMs() / 1000));
  }

  /** Records a refusal of another process: processes that share refusals ban a caller together. */
  noteRefusal(note: RefusalNote): void {
    this.#limited.noteElsewhere(note, Math.floor(this.#store.nowMs() / 1000), this.#rules.ban);
  }

  /** One caller's open windows, those of secondary limits included. Rejects when the store does not answer. */
  async explainCaller(key: string): Promise<CallerState> {
    return this.#counted(await this.#store.peek(key));
  }

  /** All callers with an open window or a request under way. */
  async *callers(): AsyncGenerator<CallerState> {
    for await (const state of this.#store.scan()) yield this.#counted(state);
  }

  /** Charges running requests for their time so far. This happens by itself twice a second. */
  chargeRunning(): void {
    this.#running.charge();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#running[Symbol.dispose]();
    await this.#store[Symbol.asyncDispose]();
  }

  /** Makes further windows known by their names, also those that only other processes have opened. */
  #nameWindows(): void {
    for (const category of CATEGORIES) {
      const { also = [] } = this.#rules.categories[category];
      for (const { windowSeconds } of also) this.#store.endpoints.furtherWindow(category, windowSeconds);
    }
  }

  async #later(verdict: Promise<Verdict>, request: AdmittedRequest): Promise<Decision> {
    try {
      return this.#decision(await verdict, request);
    } catch (error) {
      this.#reportFailure(error);
    }
    if (this.#onStoreFailure === 'open') {
      this.#own ??= new MemoryStore({ now: () => this.#store.nowMs(), endpoints: this.#store.endpoints });
      const { caller, endpoint, points, cost, rules } = request;
      const origin = { ...this.#origin, store: this.#own, unchecked: true };
      const unchecked = new AdmittedRequest(caller, endpoint, points, cost, rules, origin);
      return this.#decision(this.#own.decide(unchecked), unchecked);
    }
    this.counts.unavailable += 1;
    return this.#unavailable(request, request.caller);
  }

  #decision(verdict: Verdict, request: AdmittedRequest): Decision {
    const { caller, endpoint } = request;
    const shadowed = verdict.shadowed === 0 ? NOTHING_SHADOWED : this.#shadowed(verdict.shadowed, caller, endpoint);
    if (verdict.refusedBy >= 0) return this.#refusal(verdict, request, caller);
    this.counts.admitted += 1;
    request.admit(verdict, shadowed);
    return request;
  }

  #refusal(verdict: Verdict, ask: Ask, caller: Caller): Refusal {
    const { endpoint, rules } = ask;
    const refusedBy = LIMITS[verdict.refusedBy] ?? 'primary';
    const nowSeconds = Math.floor(verdict.nowMs / 1000);
    const wait = verdict.until > 0 ? verdict.until - nowSeconds : rules.concurrent.retrySeconds;
    this.counts.refused[refusedBy] += 1;
    const refusal = {
      allowed: false as const,
      ...statusOf(rules, caller, endpoint.category, verdict),
      caller,
      endpoint,
      kind: refusedBy === 'primary' ? ('primary' as const) : ('secondary' as const),
      refusedBy,
      retryAfterSeconds: Math.max(1, wait),
      ...nothingToEnd,
    };
    const repeated = this.#limited.note(caller, endpoint, refusal, nowSeconds, rules.ban);
    if (rules.ban !== undefined && this.#reportRefusal !== undefined) {
      const note = this.#limited.noteOf(caller.key);
      if (note !== undefined) this.#reportRefusal(note);
    }
    return { ...refusal, repeated };
  }

  #banned(caller: Caller, endpoint: Endpoint): Refusal | undefined {
    const nowSeconds = Math.floor(this.#store.nowMs() / 1000);
    const ban = this.#limited.ban(caller.key, nowSeconds);
    if (ban === undefined) return undefined;
    this.counts.banned += 1;
    const { limit, windowSeconds } = ban.shown;
    const fresh = { ...ban.shown, ...rateStatus(limit, 0, nowSeconds + windowSeconds) };
    const shown = ban.shown.reset > nowSeconds ? ban.shown : fresh;
    // Clients wait for the reset after a primary refusal, so that must not be before the end of the ban.
    const lasting = { ...shown, used: shown.limit, remaining: 0, reset: Math.max(shown.reset, ban.untilSeconds) };
    return {
      allowed: false,
      ...(ban.refusedBy === 'primary' ? lasting : shown),
      caller,
      endpoint,
      kind: 'banned',
      refusedBy: ban.refusedBy,
      retryAfterSeconds: ban.untilSeconds - nowSeconds,
      repeated: ban.refused,
      ...nothingToEnd,
    };
  }

  #unavailable({ endpoint, rules }: Ask, caller: Caller): Refusal {
    const reset = Math.ceil(this.#store.nowMs() / 1000) + rules.categories[endpoint.category].windowSeconds;
    return {
      allowed: false,
      ...statusOf(rules, caller, endpoint.category, { window: 0, used: 0, reset }),
      caller,
      endpoint,
      kind: 'unavailable',
      retryAfterSeconds: 1,
      repeated: 1,
      ...nothingToEnd,
    };
  }

  #shadowed(bits: number, caller: Caller, endpoint: Endpoint): LimitName[] {
    const names = limitsIn(bits);
    for (const name of names) {
      this.counts.shadowed[name] += 1;
      this.#reportShadow(name, caller, endpoint);
    }
    return names;
  }

  #counted(state: CallerState): CallerState {
    const nowSeconds = Math.floor(this.#store.nowMs() / 1000);
    return { ...state, windows: countedWindows(state.windows, this.#rules, nowSeconds) };
  }

  async #peek(key: string): Promise<CallerState> {
    try {
      return await this.#store.peek(key);
    } catch (error) {
      this.#reportFailure(error);
      return this.#own?.peek(key) ?? { key, underWay: 0, windows: [] };
    }
  }
}
