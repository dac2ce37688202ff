import type { Endpoints } from '../endpoints.ts';
import type { LimitStore } from '../limit-store.ts';
import {
  type Ask,
  type CallerState,
  LIMITS,
  type LimitName,
  type LimitRules,
  type LimitWindow,
  type Verdict,
} from '../types.ts';

/** What was spent, and until when it counts. */
type Spent = { used: number; end: number; slides: boolean };
type Check = { limit: LimitName; at: string; window: LimitWindow; cost: number; most: number };

/** Of a sliding window so many parts; said once more, since the model is what the stores are held against. */
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

  decide({ key, quota, endpoint, points, rules }: Ask): Verdict {
    const { name } = endpoint;
    const category = { at: `${key} ${endpoint.category}`, window: rules.categories[endpoint.category] };
    const pointRule = endpoint.graphql ? rules.graphqlPoints : rules.restPoints;
    const { contentPerMinute: minute, contentPerHour: hour, cpu } = rules;
    const content = endpoint.content ? 1 : 0;
    const cost = endpoint.primary ? 1 : 0;
    const micros = 1e6;
    const checks: Check[] = [
      { limit: 'primary', ...category, cost, most: cost === 0 ? Infinity : quota },
      {
        limit: 'points',
        at: `${key} points ${name}`,
        window: pointRule,
        cost: points,
        most: pointRule.limit,
      },
      // Anything that is left of the time lets a request begin.
      { limit: 'cpu', at: `${key} cpu`, window: cpu, cost: 0, most: cpu.totalSeconds * micros - 1 },
    ];
    if (endpoint.graphql) {
      const most = cpu.graphqlSeconds * micros - 1;
      checks.push({ limit: 'graphql-cpu', at: `${key} graphql-cpu`, window: cpu, cost: 0, most });
    }
    if (content === 1) {
      checks.push(
        { limit: 'content-minute', at: `${key} minute`, window: minute, cost: 1, most: minute.limit },
        {
          limit: 'content-minute',
          at: `${key} minute ${name}`,
          window: minute,
          cost: 1,
          most: endpoint.contentPerMinute,
        },
        { limit: 'content-hour', at: `${key} hour`, window: hour, cost: 1, most: hour.limit },
        {
          limit: 'content-hour',
          at: `${key} hour ${name}`,
          window: hour,
          cost: 1,
          most: endpoint.contentPerHour,
        },
      );
    }
    const over = checks.filter((check) => this.#used(check.at) + check.cost > check.most);
    const names = new Set<LimitName>(over.map((check) => check.limit));
    const underWay = this.#underWay.get(key) ?? 0;
    if (underWay >= rules.concurrent.limit) names.add('concurrent');
    const isShadow = (limit: LimitName): boolean =>
      rules.shadow.includes(limit) || (endpoint.shadow & (1 << LIMITS.indexOf(limit))) !== 0;
    const shadowed = [...names].filter(isShadow);
    const refusing = [...names].filter((limit) => !isShadow(limit));
    const bits = shadowed.reduce((sum, limitName) => sum + 2 ** LIMITS.indexOf(limitName), 0);
    const verdict = { shadowed: bits, nowMs: this.#now(), ticket: 0 };
    if (refusing.length > 0) {
      const ends = over
        .filter((check) => refusing.includes(check.limit))
        .map((check) => ({ limit: check.limit, end: this.#fits(check) }));
      const primary = ends.find((end) => end.limit === 'primary');
      const longest = ends.toSorted((a, b) => b.end - a.end || LIMITS.indexOf(a.limit) - LIMITS.indexOf(b.limit))[0];
      const by = primary ?? longest ?? { limit: 'concurrent' as const, end: 0 };
      const reset = primary?.end ?? (this.#firstEnd(category.at) || this.#end(category.window));
      const used = this.#used(category.at);
      return { ...verdict, refusedBy: LIMITS.indexOf(by.limit), until: by.end, used, reset };
    }
    for (const check of checks) {
      if (check.limit !== 'primary' || cost > 0) this.#add(check.at, check.cost, check.window);
    }
    this.#add(`${key} graphql-cpu`, 0, cpu);
    this.#underWay.set(key, underWay + 1);
    const endOfHour = (Math.floor(this.#now() / 3_600_000) + 1) * 3600;
    const reset = this.#firstEnd(category.at) || endOfHour;
    return { ...verdict, refusedBy: -1, until: 0, used: this.#used(category.at), reset };
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

  giveBack({ key, endpoint, points }: Ask): void {
    this.#underWay.set(key, (this.#underWay.get(key) ?? 0) - 1);
    const { name, category, primary, content } = endpoint;
    if (primary) this.#subtract(`${key} ${category}`, 1);
    this.#subtract(`${key} points ${name}`, points);
    if (!content) return;
    for (const at of ['minute', `minute ${name}`, 'hour', `hour ${name}`]) this.#subtract(`${key} ${at}`, 1);
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

  /** When a window ends that begins now. */
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
    return this.#open(at).toSorted((one, other) => one.end - other.end)[0]?.end ?? 0;
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

  /** The oldest goes first. */
  #subtract(at: string, amount: number): void {
    let rest = amount;
    const left = this.#open(at)
      .toSorted((one, other) => one.end - other.end)
      .map((spent) => {
        const taken = Math.min(rest, spent.used);
        rest -= taken;
        return { ...spent, used: spent.used - taken };
      })
      .filter(({ used, slides }) => used > 0 || !slides);
    this.#windows.set(at, left);
  }

  #add(at: string, amount: number, window: LimitWindow): void {
    const open = this.#open(at);
    if (window.window === 'sliding') {
      const step = Math.ceil(window.windowSeconds / PARTS);
      const stepBegan = Math.floor(this.#now() / 1000 / step) * step;
      if (amount > 0) {
        const end = stepBegan + step + window.windowSeconds;
        this.#windows.set(at, [...open, { used: amount, end, slides: true }]);
      }
      return;
    }
    const [only = { used: 0, end: this.#end(window), slides: false }] = open;
    this.#windows.set(at, [{ ...only, used: only.used + amount }]);
  }
}
