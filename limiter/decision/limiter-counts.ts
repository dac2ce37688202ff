import { type LimitName, LIMITS } from '../types.ts';

/** Decisions since the start, for metrics. */
export type LimiterCounts = {
  admitted: number;
  banned: number;
  unavailable: number;
  refused: Record<LimitName, number>;
  shadowed: Record<LimitName, number>;
};

export function newCounts(): LimiterCounts {
  return { admitted: 0, banned: 0, unavailable: 0, refused: zeros(), shadowed: zeros() };
}

function zeros(): Record<LimitName, number> {
  return Object.fromEntries(LIMITS.map((name) => [name, 0])) as Record<LimitName, number>;
}
