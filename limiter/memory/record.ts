import { stepEnd } from '../window-form.ts';
import type { Span } from './flat-rules.ts';

// A caller's record. Times are seconds since `EPOCH_SECONDS`, so that they stay small integers until 2088.
export const UNDER_WAY = 9;
/** The first of the caller's other windows is part of the record; the rest is linked to it. */
export const WINDOWS = 10;
export const CHANGED = 14;

// Each of the other windows: a category but core, an endpoint's points, an endpoint's own content, a step of one that slides.
export const ID = 0;
export const USED = 1;
export const END = 2;
export const NEXT = 3;

/** No window has this id: the first place of a new record is free. */
export const NO_WINDOW = -1;

export const EPOCH_SECONDS = 1_577_836_800; // 2020-01-01
export const CHUNK_MASK = 0xff_ff;
export const MAX_SIZE = 0x7f_ff_ff_ff;

/** A window that every record has a place for, while it is fixed. */
export type Slot = Readonly<{
  name: string;
  used: number;
  end: number;
  /** Number of its steps among the other windows, where it slides: that of the category, or one that no category has. */
  id: number;
  /** From what is kept to what is shown: CPU time is shown in milliseconds. */
  scale: number;
}>;

export const CORE: Slot = { name: 'core', used: 0, end: 1, id: 0, scale: 1 };
export const MINUTE: Slot = { name: 'content-minute', used: 2, end: 3, id: 10, scale: 1 };
export const HOUR: Slot = { name: 'content-hour', used: 4, end: 5, id: 11, scale: 1 };
export const CPU: Slot = { name: 'cpu', used: 6, end: 8, id: 12, scale: 1000 };
export const GRAPHQL_CPU: Slot = { name: 'graphql-cpu', used: 7, end: 8, id: 13, scale: 1000 };
export const SLOTS = [CORE, MINUTE, HOUR, CPU, GRAPHQL_CPU] as const;

/**
 * A window is over at its end. One that ends later than a whole window from now was opened before the clock was set
 * back, or under rules with longer windows: nobody should be kept waiting for that.
 */
export function isOpen(end: number, now: number, { seconds, step }: Span): boolean {
  return end > now && end <= now + seconds + step + 1;
}

export function spent(words: Int32Array, used: number, end: number, now: number, span: Span): number {
  return isOpen(words[end]!, now, span) ? words[used]! : 0;
}

/** `amount` is a whole number that 32 bits hold. */
export function add(
  words: Int32Array,
  used: number,
  end: number,
  amount: number,
  now: number,
  opened: number,
  span: Span,
): void {
  if (isOpen(words[end]!, now, span)) {
    const before = words[used]!;
    words[used] = before > MAX_SIZE - amount ? MAX_SIZE : before + amount; // stays a small integer to the compiler
    return;
  }
  words[used] = amount;
  words[end] = opened + span.seconds;
}

/** From a window that is still open; one that began since has nothing of it. */
export function subtract(words: Int32Array, used: number, end: number, amount: number, now: number, span: Span): void {
  if (isOpen(words[end]!, now, span)) words[used] = Math.max(0, words[used]! - amount);
}

/** When what is spent now in a sliding window no longer counts. */
export function endOfStep(now: number, { seconds, step }: Span): number {
  return stepEnd(now + EPOCH_SECONDS, seconds, step) - EPOCH_SECONDS;
}
