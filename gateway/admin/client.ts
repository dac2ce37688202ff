import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';

import type { CallerState, LimitedCaller } from '@gantry/limiter/types.ts';

import type { Override } from '../config/settings/identities.ts';
import type { LimitLine } from './caller-limits.ts';

/** The gateway refuses the request, or does not run. */
export class AdminError extends Error {
  override readonly name = 'AdminError';
}

export async function askLimited(socketPath: string): Promise<LimitedCaller[]> {
  return (await ask(socketPath, 'GET', '/limited')) as LimitedCaller[];
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

async function ask(socketPath: string, method: string, path: string, body?: unknown): Promise<unknown> {
  const outgoing = request({ socketPath, method, path, agent: false });
  outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  let response: IncomingMessage;
  try {
    [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new AdminError(`no gateway answers on ${socketPath}: ${why}`, { cause: error });
  }
  const answer: unknown = JSON.parse(await text(response));
  if (response.statusCode === 200) return answer;
  throw new AdminError((answer as { message?: string }).message ?? `status ${response.statusCode}`);
}
