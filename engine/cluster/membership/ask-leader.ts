import type { Static, TSchema } from 'typebox';

import type { Clock } from '../../lib/clock.ts';
import { retry } from '../../lib/concurrency/retry.ts';
import { EngineError } from '../../lib/errors.ts';
import { NotLeader, NotReached, type WireClient } from '../wire/client.ts';

/** A way to the leader, by the addresses of managers. */
export type Asking = Readonly<{ client: WireClient; clock: Clock; managers: () => readonly string[] }>;

const RETRY_DELAY_MS = 100;

/**
 * Asks the leader, which any of the managers may name. A request that no manager took, or could store at the moment, is
 * sent again, until the time is over; then the last failure is thrown, or the leader's last refusal. So asking twice must do no harm.
 */
export async function askLeader<S extends TSchema>(
  { client, clock, managers }: Asking,
  request: Readonly<{ path: string; body: unknown; answer: S; milliseconds: number; answerMs?: number }>,
): Promise<Static<S>> {
  const { path, body, answer, answerMs, milliseconds: timeoutMs } = request;
  let refusal: unknown;
  return await retry({ clock, timeoutMs, delayMs: RETRY_DELAY_MS, isTransient: isPassing }, async (leftMs) => {
    const until = performance.now() + leftMs;
    const addresses = [...managers()];
    const asked = new Set<string>();
    let failure: unknown = new NotReached('no manager is known');
    for (let address = addresses.shift(); address !== undefined; address = addresses.shift()) {
      if (asked.has(address)) continue;
      asked.add(address);
      try {
        return await client.ask(address, path, body, answer, answerMs ?? Math.max(until - performance.now(), 1000));
      } catch (error) {
        if (!isPassing(error)) throw error;
        failure = error;
        if (error instanceof EngineError) refusal = error;
        const leader = error instanceof NotLeader ? error.leader : undefined;
        if (leader !== undefined) addresses.unshift(leader);
      }
    }
    throw refusal ?? failure;
  });
}

/** Whether the same request may be answered otherwise later. */
export function isPassing(error: unknown): boolean {
  if (error instanceof EngineError) return error.kind === 'unavailable';
  return error instanceof NotLeader || error instanceof NotReached;
}
