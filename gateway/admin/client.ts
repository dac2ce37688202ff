import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';

import type { CallerState, LimitedCaller } from '@gantry/limiter/types.ts';

import type { Override } from '../config/settings/identities.ts';
import { readWhole } from '../lib/read-whole.ts';
import { reasonOf } from '../lib/reason.ts';
import type { LimitLine } from './caller-limits.ts';

/** Room for hundreds of thousands of limited callers. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const ANSWER_TIMEOUT_MS = 30_000;

/** The gateway refuses the request, or does not run. */
export class AdminError extends Error {
  override readonly name = 'AdminError';
}

export async function askLimited(socketPath: string, timeoutMs = ANSWER_TIMEOUT_MS): Promise<LimitedCaller[]> {
  return (await ask(socketPath, 'GET', '/limited', undefined, timeoutMs)) as LimitedCaller[];
}

export async function askCaller(socketPath: string, caller: string): Promise<CallerState> {
  return (await ask(socketPath, 'GET', `/callers/${encodeURIComponent(caller)}`)) as CallerState;
}

export async function askLimits(socketPath: string, caller: string): Promise<LimitLine[]> {
  return (await ask(socketPath, 'GET', `/limits/${encodeURIComponent(caller)}`)) as LimitLine[];
}

export async function forgive(socketPath: string, caller: string): Promise<void> {
  await ask(socketPath, 'POST', '/forgive', { caller });
}

export async function override(socketPath: string, caller: string, wanted: Override): Promise<void> {
  await ask(socketPath, 'POST', '/override', { caller, ...wanted });
}

export async function chargeContent(socketPath: string, caller: string, count: number): Promise<void> {
  await ask(socketPath, 'POST', '/content', { caller, count });
}

async function ask(
  socketPath: string,
  method: string,
  path: string,
  body?: unknown,
  timeoutMs = ANSWER_TIMEOUT_MS,
): Promise<unknown> {
  const outgoing = request({ socketPath, method, path, agent: false });
  outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${timeoutMs / 1000} s`)), timeoutMs);
  let status: number | undefined;
  let answer: unknown;
  try {
    const { response, text } = await Promise.race([answerTo(outgoing), late.promise]);
    status = response.statusCode;
    answer = JSON.parse(text);
  } catch (error) {
    const why = error instanceof SyntaxError ? 'its answer is not JSON' : reasonOf(error);
    throw new AdminError(`no gateway answers on ${socketPath}: ${why}`, { cause: error });
  } finally {
    clearTimeout(timer);
    outgoing.destroy();
  }
  if (status === 200) return answer;
  throw new AdminError((answer as { message?: string } | null)?.message ?? `status ${status}`);
}

async function answerTo(outgoing: ClientRequest): Promise<{ response: IncomingMessage; text: string }> {
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  outgoing.on('error', () => undefined); // the answer has one as well
  const text = await readWhole(response, MAX_ANSWER_BYTES);
  if (text === undefined) throw new Error(`its answer is larger than ${MAX_ANSWER_BYTES / 1024 ** 2} MB`);
  return { response, text };
}
