import type { LimitRules } from '../types.ts';
import { Batch } from './batch.ts';
import { type CallerHere, type KnownCallers, takeEnds } from './callers.ts';
import type { Calls } from './calls.ts';
import type { Server } from './server.ts';

/** Says three times in each lease how many requests every caller really has under way here. */
export class Renewal implements Disposable {
  readonly #callers: KnownCallers;
  readonly #server: Server;
  readonly #calls: Calls;
  readonly #most: number;
  readonly #rules: () => LimitRules | undefined;
  readonly #timer: NodeJS.Timeout;

  constructor(
    callers: KnownCallers,
    server: Server,
    calls: Calls,
    { leaseSeconds, most, rules }: { leaseSeconds: number; most: number; rules: () => LimitRules | undefined },
  ) {
    this.#callers = callers;
    this.#server = server;
    this.#calls = calls;
    this.#most = most;
    this.#rules = rules;
    this.#timer = setInterval(() => this.renew(), (leaseSeconds * 1000) / 3).unref();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  /** Renews all leases as soon as no call is under way. */
  renew(): void {
    const rules = this.#rules();
    if (rules === undefined || this.#toRenew().length === 0) return;
    this.#calls.whenQuiet(() => this.#send(rules));
  }

  #toRenew(): CallerHere[] {
    return this.#callers.toRenew().filter((caller) => !this.#server.isAway(caller));
  }

  /** A caller's waiting ends are sent before the number of its requests under way. */
  #send(rules: LimitRules): void {
    const callers = new Set(this.#toRenew());
    const ends = this.#calls.takeEnds(callers);
    let batch = new Batch(rules);
    for (const caller of callers) {
      const before = [...ends.flatMap((taken) => taken.get(caller) ?? []), ...takeEnds(caller)];
      caller.uncertain = false;
      batch.put(caller, [...before, { kind: 'renewal', count: 0, amount: caller.underWay }]);
      if (batch.size < this.#most) continue;
      this.#calls.send(batch);
      batch = new Batch(rules);
    }
    if (batch.size > 0) this.#calls.send(batch);
  }
}
