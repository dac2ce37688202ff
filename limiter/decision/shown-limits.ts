import type { Caller, Category, LimitRules, RateStatus } from '../types.ts';

/** The limit that headers show. */
export function shownLimit(rules: LimitRules, caller: Caller, category: Category): number {
  const { limit, anonymousLimit } = rules.categories[category];
  if (caller.kind === 'ip' && anonymousLimit !== undefined) return anonymousLimit;
  return typeof limit === 'string' ? caller.limit : limit;
}

/** The limit that refuses. Infinity: core is off, nothing is refused. */
export function enforcedLimit(rules: LimitRules, caller: Caller, category: Category): number {
  return rules.categories[category].limit === 'off' ? Infinity : shownLimit(rules, caller, category);
}

/** The state of a category as headers show it. Core that is off never refuses, so nothing of it is used. */
export function statusOf(
  rules: LimitRules,
  caller: Caller,
  category: Category,
  used: number,
  reset: number,
): RateStatus {
  const isOff = rules.categories[category].limit === 'off';
  return rateStatus(shownLimit(rules, caller, category), isOff ? 0 : used, reset);
}

/**
 * More than the limit may have been spent: in shadow mode, before a reload, or with another token of the same user.
 * Headers then show the limit as used.
 */
export function rateStatus(limit: number, spent: number, reset: number): RateStatus {
  const used = Math.min(spent, limit);
  return { limit, used, remaining: limit - used, reset };
}
