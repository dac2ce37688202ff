// A caller's record. Times are seconds since `EPOCH_SECONDS`, so that they stay small integers until 2088.
export const CORE_USED = 0;
export const CORE_END = 1;
export const MINUTE_USED = 2;
export const MINUTE_END = 3;
export const HOUR_USED = 4;
export const HOUR_END = 5;
export const CPU_MICROS = 6;
export const GRAPHQL_MICROS = 7;
export const CPU_END = 8;
export const UNDER_WAY = 9;
/** The first of the caller's other windows is part of the record; the rest is linked to it. */
export const WINDOWS = 10;
export const CHANGED = 14;
/** Never that of another record, nor any number that stands here where the words are windows: below 0. */
export const MARK = 15;

// Each of the other windows: a category but core, an endpoint's points, an endpoint's own content.
export const ID = 0;
export const USED = 1;
export const END = 2;
export const NEXT = 3;

/** No window has this id: the first place of a new record is free. */
export const NO_WINDOW = -1;

export const EPOCH_SECONDS = 1_577_836_800; // 2020-01-01
export const CHUNK_MASK = 0xff_ff;
export const LARGEST = 0x7f_ff_ff_ff;

/** The windows that every record has, and the factor from what is kept to what is shown (CPU in milliseconds). */
export const FIXED_WINDOWS = [
  { name: 'core', used: CORE_USED, end: CORE_END, scale: 1 },
  { name: 'content-minute', used: MINUTE_USED, end: MINUTE_END, scale: 1 },
  { name: 'content-hour', used: HOUR_USED, end: HOUR_END, scale: 1 },
  { name: 'cpu', used: CPU_MICROS, end: CPU_END, scale: 1000 },
  { name: 'graphql-cpu', used: GRAPHQL_MICROS, end: CPU_END, scale: 1000 },
] as const;

/**
 * A window is over at its end. One that ends later than a whole window from now was opened before the clock was set
 * back, or under rules with longer windows: nobody should be kept waiting for that.
 */
export function isOpen(end: number, now: number, seconds: number): boolean {
  return end > now && end <= now + seconds + 1;
}

export function spent(words: Int32Array, used: number, end: number, now: number, seconds: number): number {
  return isOpen(words[end]!, now, seconds) ? words[used]! : 0;
}

export function add(
  words: Int32Array,
  used: number,
  end: number,
  amount: number,
  now: number,
  opened: number,
  seconds: number,
): void {
  if (isOpen(words[end]!, now, seconds)) {
    words[used] = Math.min(LARGEST, words[used]! + amount);
    return;
  }
  words[used] = amount;
  words[end] = opened + seconds;
}

/** From a window that is still open; one that began since has nothing of it. */
export function subtract(
  words: Int32Array,
  used: number,
  end: number,
  amount: number,
  now: number,
  seconds: number,
): void {
  if (isOpen(words[end]!, now, seconds)) words[used] = Math.max(0, words[used]! - amount);
}
