import type { LimiterCounts } from '@gantry/limiter/decision/limiter-counts.ts';

/** Upper bounds, in seconds, of the buckets of `responseSeconds`. */
export const RESPONSE_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60] as const;

/** Counters of one process since its start. Plain numbers, so that those of several workers can be summed. */
export type Counts = {
  /** By hundreds of the status: answers of the upstream, and the gateway's own. */
  upstreamAnswers: Record<string, number>;
  ownAnswers: Record<string, number>;
  upstreamFailures: Record<'connect' | 'timeout' | 'broken' | 'busy', number>;
  clientsGone: number;
  slowClients: number;
  unauthenticated: number;
  unreadable: number;
  upgrades: number;
  rejectedConnections: number;
  storeFailures: number;
  identityFailures: number;
  responseSeconds: number[];
  responseSecondsSum: number;
  openConnections: number;
  underWay: number;
  limiter: LimiterCounts;
};

export function newCounts(limiter: LimiterCounts): Counts {
  return {
    upstreamAnswers: {},
    ownAnswers: {},
    upstreamFailures: { connect: 0, timeout: 0, broken: 0, busy: 0 },
    clientsGone: 0,
    slowClients: 0,
    unauthenticated: 0,
    unreadable: 0,
    upgrades: 0,
    rejectedConnections: 0,
    storeFailures: 0,
    identityFailures: 0,
    responseSeconds: Array<number>(RESPONSE_SECONDS.length + 1).fill(0),
    responseSecondsSum: 0,
    openConnections: 0,
    underWay: 0,
    limiter,
  };
}

export function countAnswer(answers: Record<string, number>, status: number): void {
  const hundreds = STATUS_CLASSES[Math.floor(status / 100)] ?? 'other';
  answers[hundreds] = (answers[hundreds] ?? 0) + 1;
}

const STATUS_CLASSES = ['other', '1xx', '2xx', '3xx', '4xx', '5xx'];

export function countSeconds(counts: Counts, seconds: number): void {
  let index = 0;
  while (index < RESPONSE_SECONDS.length && seconds > RESPONSE_SECONDS[index]!) index += 1;
  counts.responseSeconds[index]! += 1;
  counts.responseSecondsSum += seconds;
}

/** The sum over several workers. */
export function sumOf<T>(parts: readonly T[]): T {
  return parts.reduce((sum, part) => added(sum, part) as T);
}

function added(one: unknown, other: unknown): unknown {
  if (typeof one === 'number' && typeof other === 'number') return one + other;
  if (Array.isArray(one) && Array.isArray(other)) return one.map((value, index) => added(value, other[index]));
  if (typeof one !== 'object' || one === null || typeof other !== 'object' || other === null) return one ?? other;
  const [left, right] = [one as Record<string, unknown>, other as Record<string, unknown>];
  const names = new Set([...Object.keys(left), ...Object.keys(right)]);
  return Object.fromEntries(
    [...names].map((name) => [
      name,
      name in left && name in right ? added(left[name], right[name]) : (left[name] ?? right[name]),
    ]),
  );
}
