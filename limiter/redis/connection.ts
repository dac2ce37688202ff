import { createClient, RESP_TYPES } from '@redis/client';

/** A connection that is dead without anybody having said so is given up after this; until then it is asked each second (`asked`). */
const SILENT_MS = 5000;
const PING_MS = 1000;

/** A connection that queues nothing for a server that is not there. `url` may be the path of a socket. */
export function connectionTo(url: string) {
  const shared = { reconnectStrategy, connectTimeout: 2000, socketTimeout: SILENT_MS };
  const socket = url.startsWith('/') ? { path: url, ...shared } : shared;
  return createClient({
    ...(url.startsWith('/') ? {} : { url }),
    socket,
    disableOfflineQueue: true,
    // Its own time limit costs an AbortSignal for each command, and all that is awaited here has an end already.
    commandOptions: { timeout: 0, typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } },
  }).withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
}

/**
 * Asks the server each second, so that a silent one is noticed. The library's own timer would go on for a client that was
 * closed while it connected, and keep the process alive.
 */
export function asked(
  client: ReturnType<typeof connectionTo>,
  onAnswer: () => void,
  onError: (error: unknown) => void,
): Disposable {
  const timer = setInterval(() => {
    if (client.isReady) client.ping().then(onAnswer, onError);
  }, PING_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

function reconnectStrategy(attempts: number): number {
  return Math.min(50 * 2 ** attempts, 1000);
}
