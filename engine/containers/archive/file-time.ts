/** The years that Go writes as JSON. */
const FIRST_NS = Temporal.Instant.from('0001-01-01T00:00:00Z').epochNanoseconds;
const LAST_NS = Temporal.Instant.from('9999-12-31T23:59:59.999999999Z').epochNanoseconds;

/** A file's time as text. A file system keeps times that no calendar has; they become its first or last one. */
export function fileTime(nanoseconds: bigint): string {
  const known = nanoseconds < FIRST_NS ? FIRST_NS : nanoseconds > LAST_NS ? LAST_NS : nanoseconds;
  return Temporal.Instant.fromEpochNanoseconds(known).toString();
}
