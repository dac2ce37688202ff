import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';

import type { Api } from '../api.ts';

/** A client that asks without a pause takes a whole core from the work beside it. */
const PAUSE_MS = 20;

/** Runs `work` to its end, and fails if a request beside it is not answered. Returns the result and the number of answers. */
export async function answeredMeanwhile<T>(api: Api, work: () => Promise<T>): Promise<{ result: T; answers: number }> {
  const end = new AbortController();
  const ended = work().finally(() => end.abort());
  let answers = 0;
  do {
    assert.equal((await api.get('/_ping')).status, 200);
    answers += 1;
    await sleep(PAUSE_MS);
  } while (!end.signal.aborted);
  return { result: await ended, answers };
}
