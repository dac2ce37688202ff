import { furtherWindowName } from './endpoints.ts';
import { CATEGORIES, type LimitRules, type LimitWindow, type WindowForm, type WindowState } from './types.ts';

export const WINDOW_FORMS: readonly WindowForm[] = ['fixed', 'sliding'];

/** A sliding window is divided into this number of steps. */
const PARTS = 12;

/**
 * A sliding window counts in steps: what was spent in the same step counts together, until the last of it is as old as
 * the window is long. So nobody ever gets more than the limit within the length of the window, and what was spent counts
 * at most one step longer than it would in an exact one: a twelfth of the window, or a second where that is more.
 *
 * Each step is a small window of its own, with its own end; the sliding window is the sum of those that are open.
 */
export function stepOf({ windowSeconds, window }: LimitWindow): number {
  return window === 'sliding' ? Math.ceil(windowSeconds / PARTS) : 0;
}

/** When a step that begins now ends, in epoch seconds. All stores use the same boundaries. */
export function stepEnd(nowSeconds: number, windowSeconds: number, step: number): number {
  return (Math.floor(nowSeconds / step) + 1) * step + windowSeconds;
}

/** A step of a sliding window: how much counts until when. */
type Step = Readonly<{ used: number; end: number }>;

/** When this amount no longer counts. 0: less than that is spent. */
export function freedAt(steps: readonly Step[], amount: number): number {
  let freed = 0;
  for (const { used, end } of steps.toSorted((one, other) => one.end - other.end)) {
    freed += used;
    if (freed >= amount) return end;
  }
  return 0;
}

/** A window for the same requests as others; `reset` 0: it is not open. */
type Use = Readonly<{ limit: number; used: number; reset: number }>;

/** Index of the window that headers show: the one with the least left, of several the one that lasts longest. */
export function tightest(windows: readonly Use[]): number {
  let shown = 0;
  for (const [index, { limit, used, reset }] of windows.entries()) {
    const other = windows[shown]!;
    const [left, least] = [Math.max(0, limit - used), Math.max(0, other.limit - other.used)];
    if (left < least || (left === least && reset > other.reset)) shown = index;
  }
  return shown;
}

/**
 * One entry per window: the steps of a sliding window are added. A category's window that ends later than one that
 * begins now was opened before the clock was set back, or under rules with longer windows: decisions ignore it, too.
 */
export function countedWindows(windows: readonly WindowState[], rules: LimitRules, nowSeconds: number): WindowState[] {
  const byName = new Map<string, WindowState>();
  const primary = primaryWindows(rules);
  for (const window of windows) {
    const { name, used, reset } = window;
    const category = primary.get(name);
    if (category !== undefined && reset > nowSeconds + category.windowSeconds + stepOf(category) + 1) continue;
    const other = byName.get(name);
    const both = other && { name, used: other.used + used, reset: Math.min(other.reset, reset) };
    byName.set(name, both ?? window);
  }
  return [...byName.values()];
}

/** The windows of all categories by their names. */
function primaryWindows({ categories }: LimitRules): ReadonlyMap<string, LimitWindow> {
  const named = CATEGORIES.flatMap((category): [string, LimitWindow][] => {
    const { also = [], window = 'fixed' } = categories[category];
    const further = also.map(({ windowSeconds }): [string, LimitWindow] => {
      return [furtherWindowName(category, windowSeconds), { windowSeconds, window }];
    });
    return [[category, categories[category]], ...further];
  });
  return new Map(named);
}
