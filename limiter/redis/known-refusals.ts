import type { Ask, LimitRules, Verdict } from '../types.ts';

type KnownRefusal = Readonly<{ rules: LimitRules; quota: number; points: number; cost: number; verdict: Verdict }>;

type Entry = {
  /** By endpoint. */
  refusals: Map<number, KnownRefusal>;
  /** The newest counts of each category, so that the headers stay true while other endpoints go on. */
  latest: Map<number, Pick<Verdict, 'window' | 'used' | 'reset'>>;
  until: number;
};

/** The server's clock is known to this precision here; the last moments before a reset are left to the server. */
const PRECISION_MS = 50;
const MAX_CALLERS = 100_000;

/**
 * Refusals that are certain until a window ends, answered without asking the server: counts only grow in a window, so
 * what was refused is refused again for the same or more points and cost.
 */
export class KnownRefusals {
  readonly #entries = new Map<string, Entry>();

  find(ask: Ask, nowMs: number): Verdict | undefined {
    if (this.#entries.size === 0) return undefined;
    const entry = this.#entries.get(ask.key);
    const known = entry?.refusals.get(ask.endpoint.id);
    if (entry === undefined || known === undefined) return undefined;
    const { verdict, rules, points, cost, quota } = known;
    if (ask.rules !== rules || ask.points < points || ask.cost < cost || ask.quota !== quota) return undefined;
    if (nowMs >= verdict.until * 1000 - PRECISION_MS) return undefined;
    const latest = entry.latest.get(ask.endpoint.categoryIndex) ?? verdict;
    // The category's window can be over before the refusing one is; then only the server knows the counts.
    if (nowMs >= latest.reset * 1000 - PRECISION_MS) return undefined;
    return { ...verdict, nowMs, window: latest.window, used: latest.used, reset: latest.reset };
  }

  learn(ask: Ask, verdict: Verdict): void {
    if (verdict.refusedBy < 0 && this.#entries.size === 0) return;
    const entry = this.#entries.get(ask.key);
    const { categoryIndex, id } = ask.endpoint;
    const { window, used, reset } = verdict;
    if (entry !== undefined) entry.latest.set(categoryIndex, { window, used, reset });
    if (verdict.refusedBy < 0 || verdict.until === 0) return;
    const { rules, quota, points, cost } = ask;
    const kept = entry ?? { refusals: new Map(), latest: new Map(), until: 0 };
    kept.refusals.set(id, { rules, quota, points, cost, verdict });
    kept.latest.set(categoryIndex, { window, used, reset });
    kept.until = Math.max(kept.until, verdict.until);
    this.#entries.delete(ask.key); // so that it comes last
    this.#entries.set(ask.key, kept);
    this.#forgetOld(verdict.nowMs / 1000);
  }

  /** Its counts are less than they were. */
  forget(key: string): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  #forgetOld(nowSeconds: number): void {
    let looks = 4;
    for (const [key, entry] of this.#entries) {
      if (entry.until <= nowSeconds || this.#entries.size > MAX_CALLERS) this.#entries.delete(key);
      looks -= 1;
      if (looks === 0) return;
    }
  }
}
