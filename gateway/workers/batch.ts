import type { EndpointDefinition, Verdict } from '@gantry/limiter/types.ts';

/** What a worker asks in one turn of its event loop, as lists of plain values: a message for each would cost more than the decisions. */
export type Batch = {
  /** Those of `asks` that the primary process has not seen yet; each gets the next number. */
  endpoints: EndpointDefinition[];
  /** Caller, quota (-1: none), number of the endpoint, points; and again. */
  asks: (string | number)[];
  /** Ticket, seconds; and again. */
  ends: number[];
};

const PER_VERDICT = 7;

export function encodeVerdicts(verdicts: readonly Verdict[]): number[] {
  return verdicts.flatMap(({ refusedBy, until, shadowed, used, reset, nowMs, ticket }) => [
    refusedBy,
    until,
    shadowed,
    used,
    reset,
    nowMs,
    ticket,
  ]);
}

export function decodeVerdicts(numbers: readonly number[]): Verdict[] {
  return Array.from({ length: numbers.length / PER_VERDICT }, (_, index) => {
    const at = index * PER_VERDICT;
    const [refusedBy = -1, until = 0, shadowed = 0, used = 0, reset = 0, nowMs = 0, ticket = -1] = numbers.slice(
      at,
      at + PER_VERDICT,
    );
    return { refusedBy, until, shadowed, used, reset, nowMs, ticket };
  });
}
