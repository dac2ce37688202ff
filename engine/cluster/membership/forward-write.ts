import type { Engine } from '../../engine.ts';
import { checkResult, type Write, type WriteName, type WriteResult } from '../leader/write-schemas.ts';
import type { Feed } from '../state/feed.ts';
import type { WireClient } from '../wire/client.ts';
import { WriteAnswer } from '../wire/schemas.ts';

type Needs = Pick<Engine, 'clock'> & Readonly<{ client: WireClient; feed: Pick<Feed, 'onLeader'> | undefined }>;

const ANSWER_TIMEOUT_MS = 10_000;
/** A leader that ends in order answers what it has begun. */
const LAST_ANSWERS_TIMEOUT_MS = 1000;
const LEADER_GONE = 'the leader of the cluster has changed meanwhile: look whether this was done, and try again';

/**
 * Sends a write of the API to the leader. One that was cut off never answers, so that it is waited for only a while after it
 * has ceased to lead.
 */
export async function forwardWrite<N extends WriteName>(
  { clock, client, feed }: Needs,
  address: string,
  request: Write<N>,
): Promise<{ result: WriteResult<N>; revision: number }> {
  const over = new AbortController();
  let last: Disposable | undefined;
  using _change = feed?.onLeader(() => {
    last ??= clock.after(LAST_ANSWERS_TIMEOUT_MS, () => over.abort(LEADER_GONE));
  });
  try {
    const asked = await client.ask(address, '/v1/write', request, WriteAnswer, ANSWER_TIMEOUT_MS, over.signal);
    const { result, revision }: { result?: unknown; revision: number } = asked;
    checkResult(request.write, result);
    return { result, revision };
  } finally {
    last?.[Symbol.dispose]();
  }
}
