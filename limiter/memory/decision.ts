import { bitsOf } from '../endpoints.ts';
import { type Ask, LIMITS, type Verdict } from '../types.ts';
import { tightest } from '../window-form.ts';
import type { EndpointLimits, WindowLimit } from '../window-limits.ts';
import { addTo, type CallerRecord, endOf, freedIn, spentIn, type Time } from './windows.ts';

const PRIMARY_BIT = bitsOf(['primary']);
const CONCURRENT_BIT = bitsOf(['concurrent']);

type Shown = Pick<Verdict, 'window' | 'used' | 'reset'>;
type Refused = Shown & Pick<Verdict, 'refusedBy' | 'until'>;

/** Returns the bits of the limits that have no room for a request. `used`: what was spent of the caller's quota. */
export function findExceeded(record: CallerRecord, ask: Ask, limits: EndpointLimits, used: number, time: Time): number {
  const { endpoint, points, cost, quota, rules } = ask;
  let exceeded = cost > 0 && used + cost > quota ? PRIMARY_BIT : 0;
  if (limits.further.length > 0 && cost > 0) {
    for (const window of limits.further) {
      if (spentIn(record, window, time) + cost > window.limit) exceeded |= PRIMARY_BIT;
    }
  }
  if (record.underWay >= rules.concurrent.limit) exceeded |= CONCURRENT_BIT;
  if (points > 0 && spentIn(record, limits.points, time) + points > limits.points.limit) exceeded |= limits.points.bit;
  if (isTimeSpent(record, limits.cpu, time)) exceeded |= limits.cpu.bit;
  if (endpoint.graphql && isTimeSpent(record, limits.graphqlCpu, time)) exceeded |= limits.graphqlCpu.bit;
  for (const window of limits.content) if (spentIn(record, window, time) >= window.limit) exceeded |= window.bit;
  return exceeded;
}

/** Any time that is left lets a request begin. Even a limit of no time refuses only once its window is open. */
function isTimeSpent(record: CallerRecord, window: WindowLimit, time: Time): boolean {
  return spentIn(record, window, time) >= window.limit && (window.step > 0 || endOf(record, window, time) > 0);
}

/** Returns the category's window that headers show; its reset is 0 if it is not open. */
export function shownOf(record: CallerRecord, ask: Ask, { quota, further }: EndpointLimits, time: Time): Shown {
  const own = { limit: ask.quota, used: spentIn(record, quota, time), reset: freedIn(record, quota, 1, time) };
  if (further.length === 0) return { window: 0, used: own.used, reset: own.reset };
  const others = further.map((window) => {
    return { limit: window.limit, used: spentIn(record, window, time), reset: freedIn(record, window, 1, time) };
  });
  const windows = [own, ...others];
  const window = tightest(windows);
  const { used, reset } = windows[window]!;
  return { window, used, reset };
}

/** Counts an admitted request in all its windows at once. */
export function spend(record: CallerRecord, { points, cost }: Ask, limits: EndpointLimits, time: Time): void {
  record.underWay += 1;
  if (cost > 0) {
    addTo(record, limits.quota, cost, time);
    for (const window of limits.further) addTo(record, window, cost, time);
  }
  if (points > 0) addTo(record, limits.points, points, time);
  if (endOf(record, limits.cpu, time) === 0) spendTime(record, limits, 0, time); // time is charged later, its window begins
  for (const window of limits.content) addTo(record, window, 1, time);
}

/** GraphQL's part of the time begins with the whole, so that both end together. */
export function spendTime(record: CallerRecord, limits: EndpointLimits, micros: number, time: Time): void {
  const { endpoint, cpu, graphqlCpu } = limits;
  if (endOf(record, cpu, time) === 0) addTo(record, graphqlCpu, 0, time);
  addTo(record, cpu, micros, time);
  if (endpoint.graphql) addTo(record, graphqlCpu, micros, time);
}

/**
 * Tells which of the refusing limits is reported (the primary one, else the one that lasts longest), and when a request
 * like this fits again.
 */
export function refuse(record: CallerRecord, ask: Ask, limits: EndpointLimits, refusing: number, time: Time): Refused {
  const { quota, further, points, cpu, graphqlCpu, content } = limits;
  const shown = shownOf(record, ask, limits, time);
  // A limit that is smaller than the cost of one request refuses it even when nothing was spent.
  const fits = (window: WindowLimit, over: number): number =>
    freedIn(record, window, over, time) || time.opened + window.seconds;
  if ((refusing & PRIMARY_BIT) !== 0) {
    const last = [quota, ...further].reduce((latest, window) => {
      const over = spentIn(record, window, time) + ask.cost - (window === quota ? ask.quota : window.limit);
      return over > 0 ? Math.max(latest, fits(window, over)) : latest;
    }, 0);
    return { ...shown, refusedBy: LIMITS.indexOf('primary'), until: last, reset: last };
  }
  let [refusedBy, until] = [LIMITS.indexOf('concurrent'), 0];
  for (const window of [points, cpu, graphqlCpu, ...content]) {
    const over = spentIn(record, window, time) + (window === points ? ask.points : 1) - window.limit;
    if ((refusing & window.bit) === 0 || over <= 0) continue; // of two limits with one name, the other one refuses
    const end = fits(window, over);
    if (end > until) [refusedBy, until] = [31 - Math.clz32(window.bit), end];
  }
  const reset = shown.reset || time.opened + [quota, ...further][shown.window]!.seconds;
  return { ...shown, refusedBy, until, reset };
}
