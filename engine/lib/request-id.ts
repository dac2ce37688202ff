import { AsyncLocalStorage } from 'node:async_hooks';

import { newId } from './ids.ts';

/** The header in which a client may name its request, and finds the name in the answer. */
export const REQUEST_ID_HEADER = 'x-request-id';

const requests = new AsyncLocalStorage<string>();
/** Of this run of the daemon. */
const prefix = newId().slice(0, 8);
let count = 0;

/** The request that this work is done for, also behind the client's back; undefined outside of one. */
export function currentRequest(): string | undefined {
  return requests.getStore();
}

/** Does the work of a request; what it starts is done for the same request. */
export function asRequest<T>(id: string, work: () => T): T {
  return requests.run(id, work);
}

/** The client's own name for it, if that can stand in a log, or the next one. */
export function requestId(asked: string | readonly string[] | undefined): string {
  if (typeof asked === 'string' && /^[\w.:-]{1,64}$/.test(asked)) return asked;
  count += 1;
  return `${prefix}-${count}`;
}
