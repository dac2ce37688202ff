import { AsyncLocalStorage } from 'node:async_hooks';

import { newId } from './ids.ts';

/** The header in which a client may name its request; the answer repeats the name. */
export const REQUEST_ID_HEADER = 'x-request-id';

const requests = new AsyncLocalStorage<string>();
/** Differs between runs of the daemon. */
const prefix = newId().slice(0, 8);
let count = 0;

/** The request that the current work belongs to, background work included; undefined outside of a request. */
export function currentRequest(): string | undefined {
  return requests.getStore();
}

/** Runs the work of a request; work that it starts belongs to the same request. */
export function asRequest<T>(id: string, work: () => T): T {
  return requests.run(id, work);
}

/** The client's name for the request if it is fit for a log, or else the next number. */
export function requestId(asked: string | readonly string[] | undefined): string {
  if (typeof asked === 'string' && /^[\w.:-]{1,64}$/.test(asked)) return asked;
  count += 1;
  return `${prefix}-${count}`;
}
