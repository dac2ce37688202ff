import { setTimeout as sleep } from 'node:timers/promises';

import type { Api } from '@gantry/testing/api.ts';

const CHECK_INTERVAL_MS = 5;
const DEADLINE_MS = 180_000;

/** Looks every few milliseconds until it is so. */
export async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + DEADLINE_MS; performance.now() < end; await sleep(CHECK_INTERVAL_MS)) {
    if (await isSo()) return;
  }
  throw new Error(`${what}: not within ${DEADLINE_MS / 1000} seconds`);
}

/** The body of an answer; throws at a refusal. */
export async function expect<T>(api: Api, method: string, path: string, body?: object): Promise<T> {
  const answer = await api.request<T>(method, path, { body });
  if (answer.status >= 300) throw new Error(`${method} ${path} answered ${answer.status}: ${answer.raw.toString()}`);
  return answer.body;
}
