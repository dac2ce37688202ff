/** `2026-11-21T01:46:14.781474145Z` and the blank after it: always nine digits, unlike in the file. */
export const TIMESTAMP_BYTES = 31;
const FRACTION_END = 29;
const Z = 0x5a;
const ZERO = 0x30;

/** Whether the bytes can be a time of a log file: UTC, up to nine digits of the fraction. */
export function isTime(data: Buffer, from: number, to: number): boolean {
  return data[to - 1] === Z && to - from >= 20 && to - from <= 30;
}

/** Writes a time of the file, up to its Z, with all nine digits, and a blank. */
export function writeTimestamp(out: Buffer, at: number, data: Buffer, time: number, timeEnd: number): void {
  for (let i = 0; i < FRACTION_END; i += 1) out[at + i] = timeByte(data, time, timeEnd, i);
  out[at + FRACTION_END] = Z;
  out[at + FRACTION_END + 1] = 0x20;
}

/** Compares a time of the file (up to its Z) with one of nine digits, byte by byte: both are UTC. */
export function compareTime(data: Buffer, time: number, timeEnd: number, other: Buffer): number {
  for (let i = 0; i < FRACTION_END; i += 1) {
    const difference = timeByte(data, time, timeEnd, i) - other[i]!;
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Byte `i` of a time as if it had all nine digits of the fraction. */
function timeByte(data: Buffer, time: number, timeEnd: number, i: number): number {
  if (time + i < timeEnd) return data[time + i]!;
  return i === 19 ? 0x2e : ZERO;
}

/**
 * A time to compare those of the file with: nothing is logged before the year 0 or after 9999, where the text form has a
 * sign and more digits.
 */
export function comparable(time: Temporal.Instant): Buffer {
  const text = time.toString({ fractionalSecondDigits: 9 });
  if (text.startsWith('-')) return Buffer.from('0000-01-01T00:00:00.000000000Z');
  if (text.startsWith('+')) return Buffer.from('9999-12-31T23:59:59.999999999Z');
  return Buffer.from(text);
}
