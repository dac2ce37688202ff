const HOUR = 3600;

/**
 * The reset shown for a window that is not open: the end of the hour of the clock. It must not move while nothing
 * happens, or no ETag ever matches.
 */
export function endOfHour(seconds: number): number {
  return (Math.floor(seconds / HOUR) + 1) * HOUR;
}
