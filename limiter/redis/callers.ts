import type { Batch } from './batch.ts';
import type { Operation } from './operation.ts';

/** A caller, as long as this process has something under way for it. */
export type CallerHere = {
  readonly redisKey: string;
  /** Requests that were admitted here and have not ended. */
  underWay: number;
  /** A decision got lost: the server may count a request that is not under way. */
  uncertain: boolean;
  /** More than half of the requests that it may have under way are. */
  crowded: boolean;
  /** Ends of requests that wait for its next operation, and their microseconds of CPU time. */
  ends: number;
  micros: number;
  graphqlEnds: number;
  graphqlMicros: number;
  /** Its ends are due in the next round; they have waited for one. */
  listed: boolean;
  late: boolean;
  /** Its operations that wait in the newest batch. */
  share: Share | undefined;
  /** Calls under way that name it. */
  calls: number;
};

/** A caller's operations in one call, in the order in which they came. */
export type Share = { readonly batch: Batch; readonly caller: CallerHere; operations: Operation[] };

/** Callers are looked through for idle ones when there are twice as many as the last time, and not below this. */
const MIN_SWEEP_SIZE = 1024;
const MAX_SIZE = 0x7f_ff_ff_ff;

/** The callers that this process has something under way for, and some that it had. */
export class KnownCallers {
  readonly #prefix: string;
  readonly #byKey = new Map<string, CallerHere>();
  #sweepAt = MIN_SWEEP_SIZE;

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  find(key: string): CallerHere {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    if (this.#byKey.size >= this.#sweepAt) this.#sweep();
    const caller: CallerHere = {
      redisKey: this.redisKey(key),
      underWay: 0,
      uncertain: false,
      crowded: false,
      ends: 0,
      micros: 0,
      graphqlEnds: 0,
      graphqlMicros: 0,
      listed: false,
      late: false,
      share: undefined,
      calls: 0,
    };
    this.#byKey.set(key, caller);
    return caller;
  }

  /** The braces make the caller's name alone decide where the key lives. */
  redisKey(key: string): string {
    return `${this.#prefix}{${key}}`;
  }

  /** Those whose leases have to be renewed, or set right. */
  toRenew(): CallerHere[] {
    return Array.from(this.#byKey.values().filter(({ underWay, uncertain }) => underWay > 0 || uncertain));
  }

  #sweep(): void {
    for (const [key, caller] of this.#byKey) {
      const { underWay, uncertain, share, calls } = caller;
      const idle = underWay === 0 && !uncertain && share === undefined && calls === 0 && !hasEnds(caller);
      if (idle) this.#byKey.delete(key);
    }
    this.#sweepAt = Math.max(MIN_SWEEP_SIZE, this.#byKey.size * 2);
  }
}

export function addEnd(caller: CallerHere, graphql: boolean, cpuSeconds: number): void {
  addTime(caller, graphql, cpuSeconds);
  if (graphql) caller.graphqlEnds += 1;
  else caller.ends += 1;
}

/** The time of a running request is charged like an end of no request. */
export function addTime(caller: CallerHere, graphql: boolean, cpuSeconds: number): void {
  if (!hasEnds(caller)) caller.late = false;
  const micros = Math.round(cpuSeconds * 1e6);
  if (graphql) caller.graphqlMicros += micros;
  else caller.micros += micros;
}

export function hasEnds({ ends, micros, graphqlEnds, graphqlMicros }: CallerHere): boolean {
  return ends > 0 || graphqlEnds > 0 || micros > 0 || graphqlMicros > 0;
}

/** The ends that wait, as operations; none wait any more. */
export function takeEnds(caller: CallerHere): Operation[] {
  const { ends, micros, graphqlEnds, graphqlMicros } = caller;
  const operations: Operation[] = [];
  if (ends > 0 || micros > 0) operations.push({ kind: 'end', count: ends, amount: Math.min(MAX_SIZE, micros) });
  if (graphqlEnds > 0 || graphqlMicros > 0) {
    operations.push({ kind: 'graphql-end', count: graphqlEnds, amount: Math.min(MAX_SIZE, graphqlMicros) });
  }
  caller.ends = 0;
  caller.micros = 0;
  caller.graphqlEnds = 0;
  caller.graphqlMicros = 0;
  return operations;
}
