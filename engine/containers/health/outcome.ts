import type { Check } from './check.ts';
import type { CheckResult, Health, HealthStatus } from './store.ts';

/** Results that are kept. */
const LOG_LENGTH = 5;

/** A run begins: what is known of runs before stays in the log. */
export function atStart(id: string, before: Health | undefined): Health {
  return { id, status: 'starting', failingStreak: 0, log: before?.log ?? [] };
}

/** Without checks nothing is known: dockerd shows that as unhealthy, while it is paused and after its end. */
export function unchecked(before: Health): Health {
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
