import { CORE, CPU, GRAPHQL_CPU, HOUR, MINUTE } from '../endpoints.ts';
import { freedAt, stepEnd } from '../window-form.ts';
import { sharedIndex, type WindowLimit as Window } from '../window-limits.ts';

/**
 * The counts of one caller. `windows` has three numbers for each: its id, its count, its end in epoch seconds. The five
 * of all endpoints come first, then others, where a sliding window is once for each of its steps. A list of numbers takes
 * half the memory of an object for each window.
 */
export type CallerRecord = { underWay: number; windows: number[] };

/** The second that is under way, and the one at which a window that begins now is said to begin: none ends early. */
export type Time = Readonly<{ ms: number; now: number; opened: number }>;

/** Places of count and end after a window's id, of the next window, and of the first that is not one of the five. */
const USED = 1;
const END = 2;
const NEXT = 3;
const OTHERS = 5 * NEXT;

export function newRecord(): CallerRecord {
  return { underWay: 0, windows: [CORE, 0, 0, MINUTE, 0, 0, HOUR, 0, 0, CPU, 0, 0, GRAPHQL_CPU, 0, 0] };
}

/** Returns what counts in a window now. */
export function spentIn({ windows }: CallerRecord, window: Window, time: Time): number {
  if (window.step > 0) return openSteps(windows, window, time).reduce((sum, at) => sum + windows[at + USED]!, 0);
  const at = placeOf(windows, window);
  return at < windows.length && isOpen(windows[at + END]!, window, time) ? windows[at + USED]! : 0;
}

/** Returns the end of a fixed window; 0 if it is not open. */
export function endOf({ windows }: CallerRecord, window: Window, time: Time): number {
  const at = placeOf(windows, window);
  return at < windows.length && isOpen(windows[at + END]!, window, time) ? windows[at + END]! : 0;
}

/** Returns when this amount no longer counts; all of a fixed window ends together. 0: less is spent. */
export function freedIn(record: CallerRecord, window: Window, amount: number, time: Time): number {
  if (window.step === 0) return endOf(record, window, time);
  const { windows } = record;
  const steps = openSteps(windows, window, time).map((at) => ({ used: windows[at + USED]!, end: windows[at + END]! }));
  return freedAt(steps, amount);
}

/** Adds to a window, which begins now if it is not open. */
export function addTo(record: CallerRecord, window: Window, amount: number, time: Time): void {
  const { windows } = record;
  if (window.step > 0) return addStep(record, window, amount, time);
  const at = placeOf(windows, window);
  if (at === windows.length) return putWindow(record, window.id, amount, time.opened + window.seconds, time);
  const open = isOpen(windows[at + END]!, window, time);
  windows[at + USED] = open ? windows[at + USED]! + amount : amount;
  if (!open) windows[at + END] = time.opened + window.seconds;
}

function addStep(record: CallerRecord, window: Window, amount: number, time: Time): void {
  const { windows } = record;
  const end = stepEnd(time.now, window.seconds, window.step);
  const at = openSteps(windows, window, time).find((step) => windows[step + END] === end);
  if (at !== undefined) windows[at + USED]! += amount;
  else if (amount > 0) putWindow(record, window.id, amount, end, time);
}

/** Changes what was spent at a time, in the window or step where it counts; one that was opened later stays as it is. */
export function changeSpent(record: CallerRecord, window: Window, amount: number, spentMs: number, time: Time): void {
  const { windows } = record;
  const { step, seconds } = window;
  const latest = step > 0 ? stepEnd(Math.floor(spentMs / 1000), seconds, step) : Math.ceil(spentMs / 1000) + seconds;
  for (const at of openSteps(windows, window, time)) {
    const end = windows[at + END]!;
    if (step > 0 ? end === latest : end <= latest) windows[at + USED] = Math.max(0, windows[at + USED]! + amount);
  }
}

/** Writes a window in the place of one that is over, or at the end. */
export function putWindow(record: CallerRecord, id: number, used: number, end: number, { now }: Time): void {
  const { windows } = record;
  let at = sharedIndex(id) * NEXT;
  if (at < 0 || windows[at + END]! > now) at = OTHERS;
  while (at < windows.length && windows[at + END]! > now) at += NEXT;
  if (at < windows.length) windows.splice(at, NEXT, id, used, end);
  else record.windows = windows.concat(id, used, end); // `push` would reserve room for 16 numbers more
}

/** Lists the windows that are open, whatever the rules. */
export function openWindows({ windows }: CallerRecord, { now }: Time): { id: number; used: number; end: number }[] {
  const all = Array.from({ length: windows.length / NEXT }, (_, n) => windows.slice(n * NEXT, (n + 1) * NEXT));
  return all.map(([id = 0, used = 0, end = 0]) => ({ id, used, end })).filter(({ end }) => end > now);
}

export function isIdle(record: CallerRecord, time: Time): boolean {
  return record.underWay === 0 && openWindows(record, time).length === 0;
}

/**
 * A window is over at its end. One that ends later than a whole window from now was opened before the clock was set
 * back, or under rules with longer windows: nobody should be kept waiting for that.
 */
function isOpen(end: number, window: Window, time: Time): boolean {
  return end > time.now && end <= time.now + window.longest;
}

/** Place of the first window with this id; the list's length if there is none. */
function placeOf(windows: readonly number[], { id, shared }: Window): number {
  if (shared >= 0) return shared * NEXT;
  let at = OTHERS;
  while (at < windows.length && windows[at] !== id) at += NEXT;
  return at;
}

/** Places of a window's open steps, the oldest first. A fixed window is one step. */
function openSteps(windows: readonly number[], window: Window, time: Time): number[] {
  const steps: number[] = [];
  for (let at = 0; at < windows.length; at += NEXT) {
    if (windows[at] === window.id && isOpen(windows[at + END]!, window, time)) steps.push(at);
  }
  return steps.toSorted((one, other) => windows[one + END]! - windows[other + END]!);
}
