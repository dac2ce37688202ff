import { furtherWindowName } from '../endpoints.ts';
import type { Caller, Category, LimitRules, RateStatus, ShownStatus, WindowState } from '../types.ts';
import { tightest } from '../window-form.ts';

/** The limit that headers show of a window of the category: 0 is its own, others those of `also`. */
export function shownLimit(rules: LimitRules, caller: Caller, category: Category, window = 0): number {
  const { limit, anonymousLimit, also } = rules.categories[category];
  if (window > 0) return also![window - 1]!.limit;
  if (caller.kind === 'ip' && anonymousLimit !== undefined) return anonymousLimit;
  return typeof limit === 'string' ? caller.limit : limit;
}

/** The limit that refuses. Infinity: core is off, nothing is refused. */
export function enforcedLimit(rules: LimitRules, caller: Caller, category: Category): number {
  return rules.categories[category].limit === 'off' ? Infinity : shownLimit(rules, caller, category);
}

export function windowSecondsOf(rules: LimitRules, category: Category, window = 0): number {
  const { windowSeconds, also } = rules.categories[category];
  return window > 0 ? also![window - 1]!.windowSeconds : windowSeconds;
}

/** The state of a category as headers show it. Core that is off never refuses, so nothing of it is used. */
export function statusOf(
  rules: LimitRules,
  caller: Caller,
  category: Category,
  spent: Readonly<{ window: number; used: number; reset: number }>,
): ShownStatus {
  const { window, used, reset } = spent;
  const isOff = rules.categories[category].limit === 'off';
  return {
    ...rateStatus(shownLimit(rules, caller, category, window), isOff ? 0 : used, reset),
    resource: category,
    windowSeconds: windowSecondsOf(rules, category, window),
  };
}

/** Like `statusOf`, of the open windows by their names. `still`: the reset of one that is not open. */
export function openStatusOf(
  rules: LimitRules,
  caller: Caller,
  category: Category,
  open: ReadonlyMap<string, WindowState>,
  still: number,
): ShownStatus {
  const { also = [] } = rules.categories[category];
  const names = [category, ...also.map(({ windowSeconds }) => furtherWindowName(category, windowSeconds))];
  const windows = names.map((name, index) => {
    const { used, reset } = open.get(name) ?? { used: 0, reset: 0 };
    return { limit: shownLimit(rules, caller, category, index), used, reset };
  });
  const window = tightest(windows);
  const { used, reset } = windows[window]!;
  return statusOf(rules, caller, category, { window, used, reset: reset === 0 ? still : reset });
}

/**
 * More than the limit may have been spent: in shadow mode, before a reload, or with another token of the same user.
 * Headers then show the limit as used.
 */
export function rateStatus(limit: number, spent: number, reset: number): RateStatus {
  const used = Math.min(spent, limit);
  return { limit, used, remaining: limit - used, reset };
}
