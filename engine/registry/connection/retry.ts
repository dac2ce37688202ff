import { sleep, type Clock } from '../../lib/clock.ts';

export const ATTEMPTS = 5;
const FIRST_MS = 1000;
/** The longest wait that a registry may ask for; a longer one is an error. */
export const MAX_WAIT_MS = 60_000;

const TRANSIENT: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** Whether the same request may succeed later. */
export function isTransient(status: number): boolean {
  return TRANSIENT.has(status);
}

/** How long to wait before attempt number `attempt` + 1: as the registry asks, else doubling, with jitter. */
export function delayOf(attempt: number, retryAfter: string | undefined, now: Temporal.Instant): number {
  const asked = parseRetryAfter(retryAfter, now);
  if (asked !== undefined) return asked;
  return FIRST_MS * 2 ** (attempt - 1) * (0.75 + Math.random() / 2);
}

/** Seconds, or a date. */
function parseRetryAfter(text: string | undefined, now: Temporal.Instant): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text.trim())) return Number(text) * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now.epochMilliseconds);
}

/** Waits, or throws the signal's reason. */
export async function pause(clock: Clock, milliseconds: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  await sleep(clock, milliseconds, signal);
  signal.throwIfAborted();
}
