import type { Caller, Category, LimitRules, RateStatus } from '../types.ts';

/** The limit that headers show; for a category that is off it is the core limit. */
export function shownLimit(rules: LimitRules, caller: Caller, category: Category): number {
  const { limit, anonymousLimit } = rules.categories[category];
  if (typeof limit === 'string')
    return limit === 'off' && category !== 'core' ? shownLimit(rules, caller, 'core') : caller.limit;
  return caller.kind === 'ip' && anonymousLimit !== undefined ? anonymousLimit : limit;
}

/** The limit that refuses; Infinity: none does. */
export function enforcedLimit(rules: LimitRules, caller: Caller, category: Category): number {
  const { limit } = rules.categories[category];
  if (limit === 'caller') return caller.limit;
  return limit === 'off' ? Infinity : shownLimit(rules, caller, category);
}

/** What is shown: a category that never refuses has nothing used up. */
export function statusOf(
  rules: LimitRules,
  caller: Caller,
  category: Category,
  used: number,
  reset: number,
): RateStatus {
  const limit = shownLimit(rules, caller, category);
  return rules.categories[category].limit === 'off'
    ? { limit, used, remaining: limit, reset }
    : rateStatus(limit, used, reset);
}

export function rateStatus(limit: number, used: number, reset: number): RateStatus {
  return { limit, used, remaining: Math.max(0, limit - used), reset };
}
