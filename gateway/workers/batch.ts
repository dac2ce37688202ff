import type { EndpointDefinition, Verdict } from '@gantry/limiter/types.ts';

/** Questions of a worker in one turn of its event loop, as lists of plain values: a message for each would cost more than the decisions. */
export type Questions = {
  /** Those of `asks` that the primary process has not seen yet; each gets the next number. */
  endpoints: EndpointDefinition[];
  /** Caller, quota (-1: none), number of the endpoint, points, cost; repeated. */
  asks: (string | number)[];
  /** Changes of admitted requests: ticket, kind (below), seconds of CPU time, points or change of the cost; and again. */
  changes: number[];
};

export const END = 0;
export const CHARGE = 1;
export const GIVE_BACK = 2;
export const RECOUNT = 3;

const PER_VERDICT = 8;

export function encodeVerdicts(verdicts: readonly Verdict[]): number[] {
  return verdicts.flatMap(({ refusedBy, until, shadowed, window, used, reset, nowMs, ticket }) => [
    refusedBy,
    until,
    shadowed,
    window,
    used,
    reset,
    nowMs,
    ticket,
  ]);
}

export function decodeVerdicts(numbers: readonly number[]): Verdict[] {
  return Array.from({ length: numbers.length / PER_VERDICT }, (_, index) => {
    const at = index * PER_VERDICT;
    const [refusedBy = -1, until = 0, shadowed = 0, window = 0, used = 0, reset = 0, nowMs = 0, ticket = -1] =
      numbers.slice(at, at + PER_VERDICT);
    return { refusedBy, until, shadowed, window, used, reset, nowMs, ticket };
  });
}
