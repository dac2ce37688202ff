import { type Ask, LIMITS } from '../types.ts';
import type { FlatRules, Span } from './flat-rules.ts';
import { CORE, CPU, EPOCH_SECONDS, GRAPHQL_CPU, HOUR, MINUTE, type Slot } from './record.ts';
import type { Windows } from './windows.ts';

/** The bit of each limit in a set of them. */
export const PRIMARY_BIT = 1 << LIMITS.indexOf('primary');
export const POINTS_BIT = 1 << LIMITS.indexOf('points');
export const CONCURRENT_BIT = 1 << LIMITS.indexOf('concurrent');
export const CPU_BIT = 1 << LIMITS.indexOf('cpu');
export const GRAPHQL_CPU_BIT = 1 << LIMITS.indexOf('graphql-cpu');
export const MINUTE_BIT = 1 << LIMITS.indexOf('content-minute');
export const HOUR_BIT = 1 << LIMITS.indexOf('content-hour');

/** The part of a `Verdict` that a refusal sets. */
export type Refused = { refusedBy: number; until: number; readonly used: number; reset: number; ticket: number };

/** The counts of a caller at a moment: its record, and the seconds at which a window that begins now is said to begin. */
export type Counts = Readonly<{
  windows: Windows;
  rules: FlatRules;
  words: Int32Array;
  at: number;
  now: number;
  opened: number;
}>;

/**
 * Fills in which of the limits in `refusing` is reported (the primary one, else the one that lasts longest), and when a
 * request like this fits again.
 */
export function refuse(verdict: Refused, refusing: number, ask: Ask, counts: Counts): void {
  const { endpoint, quota } = ask;
  const { rules } = counts;
  const { categoryIndex } = endpoint;
  const category: Window = {
    slot: categoryIndex === CORE.id ? CORE : undefined,
    id: categoryIndex,
    span: rules.categories[categoryIndex]!,
  };
  verdict.ticket = -1;
  verdict.until = 0;
  if ((refusing & PRIMARY_BIT) !== 0) {
    verdict.refusedBy = 0;
    verdict.until = freed(counts, category, verdict.used + 1 - quota);
    verdict.reset = verdict.until;
    return;
  }
  verdict.reset = freed(counts, category, 1);
  if ((refusing & CONCURRENT_BIT) !== 0) verdict.refusedBy = numberOf(CONCURRENT_BIT);
  for (const { bit, window, cost, limit } of windowLimits(ask, rules)) {
    if ((refusing & bit) === 0) continue;
    const over = spent(counts, window) + cost - limit;
    if (over <= 0) continue; // of two limits with one bit, the other one refuses
    const end = freed(counts, window, over);
    if (verdict.until !== 0 && end <= verdict.until) continue;
    verdict.refusedBy = numberOf(bit);
    verdict.until = end;
  }
}

type Window = Readonly<{ slot: Slot | undefined; id: number; span: Span }>;
type WindowLimit = Readonly<{ bit: number; window: Window; cost: number; limit: number }>;

/** The limits of windows except the primary one. Any CPU time that is left lets a request begin. */
function windowLimits({ endpoint, points }: Ask, rules: FlatRules): readonly WindowLimit[] {
  const { id, graphql } = endpoint;
  const { minute, hour, cpu } = rules;
  const pointLimit = graphql ? rules.graphqlPoints : rules.restPoints;
  return [
    { bit: POINTS_BIT, window: own(id, graphql ? rules.graphql : rules.rest), cost: points, limit: pointLimit },
    { bit: CPU_BIT, window: shared(CPU, cpu), cost: 1, limit: rules.cpuMicros },
    { bit: GRAPHQL_CPU_BIT, window: shared(GRAPHQL_CPU, cpu), cost: 1, limit: rules.graphqlMicros },
    { bit: MINUTE_BIT, window: shared(MINUTE, minute), cost: 1, limit: rules.minuteLimit },
    { bit: MINUTE_BIT, window: own(id + 1, minute), cost: 1, limit: endpoint.contentPerMinute },
    { bit: HOUR_BIT, window: shared(HOUR, hour), cost: 1, limit: rules.hourLimit },
    { bit: HOUR_BIT, window: own(id + 2, hour), cost: 1, limit: endpoint.contentPerHour },
  ];
}

/** A window of an endpoint's own. */
function own(id: number, span: Span): Window {
  return { slot: undefined, id, span };
}

/** A window of all endpoints, which has a slot in the record. */
function shared(slot: Slot, span: Span): Window {
  return { slot, id: slot.id, span };
}

function spent({ windows, words, at, now }: Counts, { slot, id, span }: Window): number {
  return slot === undefined ? windows.spentOf(words, at, id, now, span) : windows.spent(words, at, slot, now, span);
}

/** When this amount of what was spent no longer counts, in epoch seconds. */
function freed({ windows, words, at, now, opened }: Counts, { slot, id, span }: Window, amount: number): number {
  const end =
    slot === undefined
      ? windows.freed(words, at, id, now, span, amount)
      : windows.freedIn(words, at, slot, now, span, amount);
  // A limit that is smaller than the cost of one request refuses it even when nothing was spent.
  return (end === 0 ? opened + span.seconds : end) + EPOCH_SECONDS;
}

function numberOf(bit: number): number {
  return 31 - Math.clz32(bit);
}
