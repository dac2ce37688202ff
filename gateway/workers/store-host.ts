import type { Ask, Endpoint, LimitRules, Verdict } from '@gantry/limiter/types.ts';

import type { LocalStore } from '../store.ts';
import { type Questions, CHARGE, encodeVerdicts, GIVE_BACK, RECOUNT } from './batch.ts';

/** The side of the primary process: one worker's requests, decided on the counts of all. */
export class StoreHost {
  readonly #store: LocalStore;
  readonly #rules: (key: string) => LimitRules;
  readonly #endpoints: Endpoint[] = [];
  /** Pending requests of this worker, by a number that it knows. */
  readonly #underWay = new Map<number, { ask: Ask; ticket: number; decidedMs: number }>();
  #admitted = 0;

  constructor(store: LocalStore, rules: (key: string) => LimitRules) {
    this.#store = store;
    this.#rules = rules;
  }

  /** The verdicts on the asks, in their order. */
  batch({ endpoints, asks, changes }: Questions): number[] {
    for (const definition of endpoints) this.#endpoints.push(this.#store.endpoints.define(definition));
    for (let at = 0; at < changes.length; at += 4) {
      this.#change(changes[at]!, changes[at + 1]!, changes[at + 2]!, changes[at + 3]!);
    }
    const verdicts: Verdict[] = [];
    for (let at = 0; at < asks.length; at += 5) {
      const [key, quota, number, points, cost] = asks.slice(at, at + 5) as [string, number, number, number, number];
      const endpoint = this.#endpoints[number];
      if (endpoint === undefined) throw new Error(`a worker asks for endpoint ${number}, which it has not defined`);
      const spends = { quota: quota < 0 ? Infinity : quota, points, cost };
      verdicts.push(this.#decide({ key, endpoint, ...spends, rules: this.#rules(key) }));
    }
    return encodeVerdicts(verdicts);
  }

  /** The worker is gone: so is everything that it had under way. */
  releaseAll(): void {
    for (const { ask, ticket } of this.#underWay.values()) this.#store.release(ask, ticket, 0);
    this.#underWay.clear();
  }

  #decide(ask: Ask): Verdict {
    const verdict = { ...this.#store.decide(ask) };
    if (verdict.refusedBy >= 0) return verdict;
    this.#admitted += 1;
    this.#underWay.set(this.#admitted, { ask, ticket: verdict.ticket, decidedMs: verdict.nowMs });
    verdict.ticket = this.#admitted;
    return verdict;
  }

  #change(number: number, change: number, cpuSeconds: number, points: number): void {
    const found = this.#underWay.get(number);
    if (found === undefined) return;
    const { ask, ticket, decidedMs } = found;
    if (change === RECOUNT) return this.#store.recount(ask, ticket, decidedMs, points);
    if (change === CHARGE) return this.#store.charge(ask, ticket, cpuSeconds, points);
    this.#underWay.delete(number);
    if (change === GIVE_BACK) this.#store.giveBack(ask, ticket, decidedMs);
    else this.#store.release(ask, ticket, cpuSeconds);
  }
}
