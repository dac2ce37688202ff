import { sleep, type Clock } from '../../lib/clock.ts';
import { RegistryError, Unreachable } from '../errors.ts';

/** Waits between attempts, with the end of all of them. */
type Waiting = Readonly<{
  clock: Clock;
  signal: AbortSignal;
  /** Called before a wait. */
  onRetry?: ((seconds: number) => void) | undefined;
}>;

const MAX_ATTEMPTS = 5;
const FIRST_MS = 1000;
/** The longest wait that a registry may ask for; a longer one is an error. */
const MAX_WAIT_MS = 60_000;

const TRANSIENT: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504]);

/** Whether the same request may succeed later. */
export function isTransient(error: unknown): boolean {
  return error instanceof Unreachable || (error instanceof RegistryError && TRANSIENT.has(error.status));
}

/** Attempts at one thing: their count, and the waits between them. */
export class Retries {
  readonly #waiting: Waiting;
  #failures = 0;

  constructor(waiting: Waiting) {
    this.#waiting = waiting;
  }

  /** Forgets earlier failures after some progress. */
  reset(): void {
    this.#failures = 0;
  }

  /** Waits after a failure: as long as the registry asks, else twice the last wait, with jitter. Throws the last failure. */
  async pause(error: unknown): Promise<void> {
    const { clock, signal, onRetry } = this.#waiting;
    this.#failures += 1;
    const asked = error instanceof RegistryError ? parseRetryAfter(error.retryAfter, clock.now()) : undefined;
    const milliseconds = asked ?? FIRST_MS * 2 ** (this.#failures - 1) * (0.75 + Math.random() / 2);
    if (this.#failures === MAX_ATTEMPTS || milliseconds > MAX_WAIT_MS) throw error;
    onRetry?.(Math.ceil(milliseconds / 1000));
    await sleep(clock, milliseconds, signal);
    signal.throwIfAborted();
  }
}

/** Seconds, or a date. */
function parseRetryAfter(text: string | undefined, now: Temporal.Instant): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text.trim())) return Number(text) * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now.epochMilliseconds);
}
