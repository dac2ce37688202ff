import { createClient, RESP_TYPES } from '@redis/client';

/** A connection that queues nothing for a server that is not there. `url` may be the path of a socket. */
export function connectionTo(url: string) {
  const socket = url.startsWith('/')
    ? { path: url, reconnectStrategy, connectTimeout: 2000 }
    : { reconnectStrategy, connectTimeout: 2000 };
  return createClient({
    ...(url.startsWith('/') ? {} : { url }),
    socket,
    disableOfflineQueue: true,
    // Its own time limit costs an AbortSignal for each command, and all that is awaited here has an end already.
    commandOptions: { timeout: 0, typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
  }).withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
}

export class NoAnswer extends Error {}

/** Rejects with `NoAnswer` when there is none in time. */
export async function withinTime<T>(answer: Promise<T>, timeoutMs: number): Promise<T> {
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new NoAnswer(`redis has not answered in ${timeoutMs} ms`)), timeoutMs);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function reconnectStrategy(attempts: number): number {
  return Math.min(50 * 2 ** attempts, 1000);
}
