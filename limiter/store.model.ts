import {
  type Ask,
  type CallerState,
  LIMITS,
  type LimitName,
  type LimitRules,
  type LimitStore,
  type Verdict,
} from './types.ts';

type Window = { used: number; end: number };

/**
 * The rules in the plainest form: named windows in a map, nothing packed, nothing forgotten. For tests only: the
 * property test holds the real stores against it.
 */
export class ModelStore implements LimitStore {
  readonly #now: () => number;
  readonly #windows = new Map<string, Window>();
  readonly #underWay = new Map<string, number>();

  constructor(now: () => number) {
    this.#now = now;
  }

  nowMs(): number {
    return this.#now();
  }

  decide({ key, quota, endpoint, points, rules }: Ask): Verdict {
    const { name } = endpoint;
    const category = { at: `${key} ${endpoint.category}`, seconds: rules.categories[endpoint.category].windowSeconds };
    const pointRule = endpoint.graphql ? rules.graphqlPoints : rules.restPoints;
    const { contentPerMinute: minute, contentPerHour: hour, cpu } = rules;
    const content = endpoint.content ? 1 : 0;
    const cost = endpoint.primary ? 1 : 0;
    type Check = { limit: LimitName; at: string; seconds: number; cost: number; most: number };
    const micros = 1e6;
    const checks: Check[] = [
      { limit: 'primary', ...category, cost, most: cost === 0 ? Infinity : quota },
      {
        limit: 'points',
        at: `${key} points ${name}`,
        seconds: pointRule.windowSeconds,
        cost: points,
        most: pointRule.limit,
      },
      // Anything that is left of the time lets a request begin.
      { limit: 'cpu', at: `${key} cpu`, seconds: cpu.windowSeconds, cost: 0, most: cpu.totalSeconds * micros - 1 },
    ];
    if (endpoint.graphql) {
      const most = cpu.graphqlSeconds * micros - 1;
      checks.push({ limit: 'graphql-cpu', at: `${key} graphql-cpu`, seconds: cpu.windowSeconds, cost: 0, most });
    }
    if (content === 1) {
      checks.push(
        { limit: 'content-minute', at: `${key} minute`, seconds: minute.windowSeconds, cost: 1, most: minute.limit },
        {
          limit: 'content-minute',
          at: `${key} minute ${name}`,
          seconds: minute.windowSeconds,
          cost: 1,
          most: endpoint.contentPerMinute,
        },
        { limit: 'content-hour', at: `${key} hour`, seconds: hour.windowSeconds, cost: 1, most: hour.limit },
        {
          limit: 'content-hour',
          at: `${key} hour ${name}`,
          seconds: hour.windowSeconds,
          cost: 1,
          most: endpoint.contentPerHour,
        },
      );
    }
    const over = checks.filter((check) => this.#window(check.at).used + check.cost > check.most);
    const names = new Set<LimitName>(over.map((check) => check.limit));
    const underWay = this.#underWay.get(key) ?? 0;
    if (underWay >= rules.concurrent.limit) names.add('concurrent');
    const shadowed = [...names].filter((limitName) => rules.shadow.includes(limitName));
    const refusing = [...names].filter((limitName) => !rules.shadow.includes(limitName));
    const bits = shadowed.reduce((sum, limitName) => sum + 2 ** LIMITS.indexOf(limitName), 0);
    const verdict = { shadowed: bits, nowMs: this.#now(), ticket: 0 };
    if (refusing.length > 0) {
      const ends = over
        .filter((check) => refusing.includes(check.limit))
        .map((check) => ({ limit: check.limit, end: this.#window(check.at).end || this.#end(check.seconds) }));
      const primary = ends.find((end) => end.limit === 'primary');
      const longest = ends.toSorted((a, b) => b.end - a.end || LIMITS.indexOf(a.limit) - LIMITS.indexOf(b.limit))[0];
      const by = primary ?? longest ?? { limit: 'concurrent' as const, end: 0 };
      const { used, end } = this.#window(category.at);
      const reset = end || this.#end(category.seconds);
      return { ...verdict, refusedBy: LIMITS.indexOf(by.limit), until: by.end, used, reset };
    }
    for (const check of checks) {
      if (check.limit !== 'primary' || cost > 0) this.#add(check.at, check.cost, check.seconds);
    }
    this.#add(`${key} graphql-cpu`, 0, cpu.windowSeconds);
    this.#underWay.set(key, underWay + 1);
    const { used, end } = this.#window(category.at);
    const endOfHour = (Math.floor(this.#now() / 3_600_000) + 1) * 3600;
    return { ...verdict, refusedBy: -1, until: 0, used, reset: end || endOfHour };
  }

  release(ask: Ask, ticket: number, cpuSeconds: number): void {
    this.#underWay.set(ask.key, (this.#underWay.get(ask.key) ?? 0) - 1);
    this.charge(ask, ticket, cpuSeconds, 0);
  }

  charge({ key, endpoint, rules }: Ask, _ticket: number, cpuSeconds: number, points: number): void {
    const pointRule = endpoint.graphql ? rules.graphqlPoints : rules.restPoints;
    if (points > 0) this.#add(`${key} points ${endpoint.name}`, points, pointRule.windowSeconds);
    if (cpuSeconds === 0) return;
    this.#add(`${key} cpu`, cpuSeconds * 1e6, rules.cpu.windowSeconds);
    this.#add(`${key} graphql-cpu`, endpoint.graphql ? cpuSeconds * 1e6 : 0, rules.cpu.windowSeconds);
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
    this.#add(`${key} minute`, count, rules.contentPerMinute.windowSeconds);
    this.#add(`${key} hour`, count, rules.contentPerHour.windowSeconds);
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

  #end(seconds: number): number {
    return Math.ceil(this.#now() / 1000) + seconds;
  }

  #window(at: string): Window {
    const window = this.#windows.get(at);
    return window === undefined || this.#now() >= window.end * 1000 ? { used: 0, end: 0 } : window;
  }

  #subtract(at: string, amount: number): void {
    const { used, end } = this.#window(at);
    if (end > 0) this.#windows.set(at, { used: Math.max(0, used - amount), end });
  }

  #add(at: string, amount: number, seconds: number): void {
    const { used, end } = this.#window(at);
    this.#windows.set(at, { used: used + amount, end: end || this.#end(seconds) });
  }
}
