import type { Check } from './check.ts';
import type { CheckResult, Health, HealthStatus } from './store.ts';

/** The number of results that are kept. */
const LOG_LENGTH = 5;

/** The health at the beginning of a run: results of earlier runs stay in the log. */
export function atStart(id: string, before: Health | undefined): Health {
  return { id, status: 'starting', failingStreak: 0, log: before?.log ?? [] };
}

/** The health while there are no checks, during a pause and after the end: unhealthy, as in dockerd. */
export function markUnhealthy(before: Health): Health {
  return before.status === 'unhealthy' ? before : { ...before, status: 'unhealthy' };
}

/** A failure in the start period does not count, as long as no check has succeeded. */
export function afterResult(before: Health, result: CheckResult, check: Check, startedAt: Temporal.Instant): Health {
  const log = [...before.log, result].slice(-LOG_LENGTH);
  if (result.exitCode === 0) return { ...before, status: 'healthy', failingStreak: 0, log };
  const age = startedAt.until(result.start).total('milliseconds');
  if (before.status === 'starting' && age < check.startPeriodMs) return { ...before, log };
  const failingStreak = before.failingStreak + 1;
  const status: HealthStatus = failingStreak >= check.retries ? 'unhealthy' : before.status;
  return { ...before, status, failingStreak, log };
}
