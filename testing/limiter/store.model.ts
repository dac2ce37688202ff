import type { Endpoints } from '@gantry/limiter/endpoints.ts';
import type { LimitStore } from '@gantry/limiter/limit-store.ts';
import {
  type Ask,
  type CallerState,
  LIMITS,
  type LimitName,
  type LimitRules,
  type LimitWindow,
  type Verdict,
} from '@gantry/limiter/types.ts';

/** Spent points, the time until which they count, and the time in which they were spent; in seconds. */
type Spent = { used: number; end: number; from: number; to: number; slides: boolean };
type Check = { limit: LimitName; at: string; window: LimitWindow; cost: number; most: number };

/** Steps of a sliding window; repeated here, since the stores are held against the model. */
const PARTS = 12;

/**
 * The rules in the plainest form: named windows in a map, nothing packed, nothing forgotten. For tests only: the
 * property test holds the real stores against it.
 */
export class ModelStore implements LimitStore {
  readonly endpoints: Endpoints;
  readonly #now: () => number;
  readonly #windows = new Map<string, readonly Spent[]>();
  readonly #underWay = new Map<string, number>();

  constructor(now: () => number, endpoints: Endpoints) {
    this.#now = now;
    this.endpoints = endpoints;
  }

  nowMs(): number {
    return this.#now();
  }

  decide(ask: Ask): Verdict {
    const { key, endpoint, rules } = ask;
    const checks = checksOf(ask);
    const over = checks.filter((check) => this.#used(check.at) + check.cost > check.most);
    const names = new Set<LimitName>(over.map((check) => check.limit));
    const underWay = this.#underWay.get(key) ?? 0;
    if (underWay >= rules.concurrent.limit) names.add('concurrent');
    const isShadow = (limit: LimitName): boolean =>
      rules.shadow.includes(limit) || (endpoint.shadow & (1 << LIMITS.indexOf(limit))) !== 0;
    const shadowed = [...names].filter(isShadow).reduce((sum, limit) => sum + 2 ** LIMITS.indexOf(limit), 0);
    const refusing = [...names].filter((limit) => !isShadow(limit));
    const verdict = { shadowed, nowMs: this.#now(), ticket: 0 };
    if (refusing.length > 0) {
      const ends = over.filter(({ limit }) => refusing.includes(limit)).map((check) => this.#endOf(check));
      return { ...verdict, ...this.#refused(ends, ask) };
    }
    for (const check of checks) {
      if (check.limit !== 'primary' || check.cost > 0) this.#add(check.at, check.cost, check.window);
    }
    this.#add(`${key} graphql-cpu`, 0, rules.cpu);
    this.#underWay.set(key, underWay + 1);
    const endOfHour = (Math.floor(this.#now() / 3_600_000) + 1) * 3600;
    const { window, used, end } = this.#shown(ask);
    return { ...verdict, refusedBy: -1, until: 0, window, used, reset: end || endOfHour };
  }

  /** The primary limit, else the one that lasts longest. */
  #refused(ends: readonly End[], ask: Ask): Pick<Verdict, 'refusedBy' | 'until' | 'window' | 'used' | 'reset'> {
    const byEnd = ends.toSorted((a, b) => b.end - a.end || LIMITS.indexOf(a.limit) - LIMITS.indexOf(b.limit));
    const primary = byEnd.find((end) => end.limit === 'primary');
    const by = primary ?? byEnd[0] ?? { limit: 'concurrent' as const, end: 0 };
    const { window, used, end } = this.#shown(ask);
    const reset = primary?.end ?? (end || this.#end(primaryWindows(ask)[window]!.window));
    return { refusedBy: LIMITS.indexOf(by.limit), until: by.end, window, used, reset };
  }

  /** The primary window with the least left; of several the one that ends last, of these the first. */
  #shown(ask: Ask): { window: number; used: number; end: number } {
    const windows = primaryWindows(ask).map(({ at, most }, window) => {
      const used = this.#used(at);
      return { window, used, end: this.#firstEnd(at), left: Math.max(0, most - used) };
    });
    return windows.toSorted((a, b) => a.left - b.left || b.end - a.end || a.window - b.window)[0]!;
  }

  #endOf(check: Check): End {
    return { limit: check.limit, end: this.#fits(check) };
  }

  release(ask: Ask, ticket: number, cpuSeconds: number): void {
    this.#underWay.set(ask.key, (this.#underWay.get(ask.key) ?? 0) - 1);
    this.charge(ask, ticket, cpuSeconds, 0);
  }

  charge({ key, endpoint, rules }: Ask, _ticket: number, cpuSeconds: number, points: number): void {
    const pointRule = endpoint.graphql ? rules.graphqlPoints : rules.restPoints;
    if (points > 0) this.#add(`${key} points ${endpoint.name}`, points, pointRule);
    if (cpuSeconds === 0) return;
    this.#add(`${key} cpu`, cpuSeconds * 1e6, rules.cpu);
    this.#add(`${key} graphql-cpu`, endpoint.graphql ? cpuSeconds * 1e6 : 0, rules.cpu);
  }

  giveBack(ask: Ask, ticket: number, decidedMs: number): void {
    const { key, endpoint, points } = ask;
    this.#underWay.set(key, (this.#underWay.get(key) ?? 0) - 1);
    const { name, primary, content } = endpoint;
    if (primary) this.recount(ask, ticket, decidedMs, -1);
    this.#change(`${key} points ${name}`, -points, decidedMs);
    if (!content) return;
    for (const at of ['minute', `minute ${name}`, 'hour', `hour ${name}`]) this.#change(`${key} ${at}`, -1, decidedMs);
  }

  recount(ask: Ask, _ticket: number, decidedMs: number, change: number): void {
    for (const { at } of primaryWindows(ask)) this.#change(at, change, decidedMs);
  }

  chargeContent(key: string, count: number, rules: LimitRules): void {
    this.#add(`${key} minute`, count, rules.contentPerMinute);
    this.#add(`${key} hour`, count, rules.contentPerHour);
  }

  forget(key: string): void {
    for (const at of this.#windows.keys()) if (at.startsWith(`${key} `)) this.#windows.delete(at);
  }

  peek(key: string): CallerState {
    return { key, underWay: this.#underWay.get(key) ?? 0, windows: [] };
  }

  async *scan(): AsyncGenerator<CallerState> {
    for (const key of this.#underWay.keys()) yield this.peek(key);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#windows.clear();
  }

  /** When a window that begins now ends. */
  #end({ windowSeconds }: LimitWindow): number {
    return Math.ceil(this.#now() / 1000) + windowSeconds;
  }

  #open(at: string): Spent[] {
    return (this.#windows.get(at) ?? []).filter(({ end }) => this.#now() < end * 1000);
  }

  #used(at: string): number {
    return this.#open(at).reduce((sum, { used }) => sum + used, 0);
  }

  #firstEnd(at: string): number {
    const counting = this.#open(at).filter(({ used, slides }) => used > 0 || !slides);
    return counting.toSorted((one, other) => one.end - other.end)[0]?.end ?? 0;
  }

  /** When there is room for this again. */
  #fits({ at, window, cost, most }: Check): number {
    let excess = this.#used(at) + cost - most;
    for (const { used, end } of this.#open(at).toSorted((one, other) => one.end - other.end)) {
      excess -= used;
      if (window.window !== 'sliding' || excess <= 0) return end;
    }
    return this.#end(window);
  }

  /** Changes what was spent then; nothing if the window in which it was is over. */
  #change(at: string, amount: number, spentMs: number): void {
    const changed = this.#open(at).map((spent) => {
      const seconds = spent.slides ? spentMs / 1000 : Math.ceil(spentMs / 1000);
      const counts = spent.from <= seconds && seconds < spent.to;
      return counts ? { ...spent, used: Math.max(0, spent.used + amount) } : spent;
    });
    this.#windows.set(at, changed);
  }

  #add(at: string, amount: number, window: LimitWindow): void {
    const open = this.#open(at);
    if (window.window === 'sliding') {
      const step = Math.ceil(window.windowSeconds / PARTS);
      const stepBegan = Math.floor(this.#now() / 1000 / step) * step;
      const end = stepBegan + step + window.windowSeconds;
      const same = open.find((spent) => spent.end === end) ?? {
        used: 0,
        end,
        from: stepBegan,
        to: stepBegan + step,
        slides: true,
      };
      const others = open.filter((spent) => spent.end !== end);
      if (amount > 0) this.#windows.set(at, [...others, { ...same, used: same.used + amount }]);
      return;
    }
    const from = Math.ceil(this.#now() / 1000);
    const [only = { used: 0, end: this.#end(window), from, to: Infinity, slides: false }] = open;
    this.#windows.set(at, [{ ...only, used: only.used + amount }]);
  }
}

type End = Readonly<{ limit: LimitName; end: number }>;

/** The windows of the primary limit: that of the category, and further ones. */
function primaryWindows({ key, quota, endpoint: { category }, rules }: Ask): Omit<Check, 'limit' | 'cost'>[] {
  const rule = rules.categories[category];
  const { also = [], window = 'fixed' } = rule;
  return [
    { at: `${key} ${category}`, window: rule, most: quota },
    ...also.map(({ limit, windowSeconds }) => {
      return { at: `${key} ${category} ${windowSeconds}`, window: { windowSeconds, window }, most: limit };
    }),
  ];
}

/** Every limit on windows that a request meets, the primary one first. */
function checksOf(ask: Ask): Check[] {
  const { key, endpoint, points, rules } = ask;
  const { name, primary, graphql, content } = endpoint;
  const { contentPerMinute: minute, contentPerHour: hour, cpu } = rules;
  const pointRule = graphql ? rules.graphqlPoints : rules.restPoints;
  // Any time that is left lets a request begin.
  const time = (limit: 'cpu' | 'graphql-cpu', seconds: number): Check => ({
    limit,
    at: `${key} ${limit}`,
    window: cpu,
    cost: 0,
    most: seconds * 1e6 - 1,
  });
  const creation = (
    limit: 'content-minute' | 'content-hour',
    at: string,
    window: LimitWindow,
    most: number,
  ): Check => ({
    limit,
    at: `${key} ${at}`,
    window,
    cost: 1,
    most,
  });
  const checks: Check[] = [
    ...primaryWindows(ask).map((each): Check => {
      return { ...each, limit: 'primary', cost: primary ? 1 : 0, most: primary ? each.most : Infinity };
    }),
    { limit: 'points', at: `${key} points ${name}`, window: pointRule, cost: points, most: pointRule.limit },
    time('cpu', cpu.totalSeconds),
  ];
  if (graphql) checks.push(time('graphql-cpu', cpu.graphqlSeconds));
  if (content) {
    checks.push(
      creation('content-minute', 'minute', minute, minute.limit),
      creation('content-minute', `minute ${name}`, minute, endpoint.contentPerMinute),
      creation('content-hour', 'hour', hour, hour.limit),
      creation('content-hour', `hour ${name}`, hour, endpoint.contentPerHour),
    );
  }
  return checks;
}
