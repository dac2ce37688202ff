/** The difference of the managers' clocks that is waited for. */
const SKEW_SECONDS = 60;
const LONG_AGO = Temporal.Instant.fromEpochMilliseconds(0);

/**
 * A moment that a leader has stored, to wait for some time after it. One that is far ahead is of a manager whose clock is wrong,
 * or was: nothing waits for it.
 */
export function plausibleMoment(moment: string, now: Temporal.Instant): Temporal.Instant {
  const at = Temporal.Instant.from(moment);
  return Temporal.Instant.compare(at, now.add({ seconds: SKEW_SECONDS })) > 0 ? LONG_AGO : at;
}
