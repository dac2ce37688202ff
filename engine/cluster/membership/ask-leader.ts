import type { Static, TSchema } from 'typebox';

import { sleep, type Clock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { NotLeader, NotReached, type WireClient } from '../wire/client.ts';

const RETRY_DELAY_MS = 100;

/**
 * Asks the leader, which any of the managers may name. A request that no manager took, or could store at the moment, is
 * sent again, until the time is over; then the last failure is thrown, or the leader's last refusal. So asking twice must do no harm.
 */
export async function askLeader<S extends TSchema>(
  { client, clock }: { client: WireClient; clock: Clock },
  managers: () => readonly string[],
  request: Readonly<{ path: string; body: unknown; answer: S; milliseconds: number; answerMs?: number }>,
): Promise<Static<S>> {
  const until = performance.now() + request.milliseconds;
  let leader: string | undefined;
  let reason: unknown = new NotReached('no manager is known');
  for (;;) {
    for (const address of leader === undefined ? managers() : [leader]) {
      try {
        const { path, body, answer, answerMs } = request;
        return await client.ask(address, path, body, answer, answerMs ?? Math.max(until - performance.now(), 1000));
      } catch (error) {
        if (!isPassing(error)) throw error;
        reason = moreTelling(reason, error);
        leader = error instanceof NotLeader && error.leader !== address ? error.leader : undefined;
        if (leader !== undefined) break;
      }
    }
    if (performance.now() > until) throw reason;
    if (leader !== undefined) continue;
    await sleep(clock, RETRY_DELAY_MS);
  }
}

/** That a manager does not lead, or does not answer, says less than why the leader could not do it. */
function moreTelling(before: unknown, error: unknown): unknown {
  return before instanceof EngineError && !(error instanceof EngineError) ? before : error;
}

/** Whether the same request may be answered otherwise later. */
export function isPassing(error: unknown): boolean {
  if (error instanceof EngineError) return error.kind === 'unavailable';
  return error instanceof NotLeader || error instanceof NotReached;
}
