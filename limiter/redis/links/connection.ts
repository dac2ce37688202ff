import { createClient, RESP_TYPES } from '@redis/client';

/** A connection that is silently dead is given up after this; until then it is asked each second. */
const SILENT_MS = 5000;
export const CONNECT_TIMEOUT_MS = 2000;
const PING_MS = 1000;
const SCAN_PAGE = 500;

export type Client = ReturnType<typeof connectionTo>;

/** Options of every connection, whatever is behind it. */
const SOCKET = { reconnectStrategy, connectTimeout: CONNECT_TIMEOUT_MS, socketTimeout: SILENT_MS } as const;
// The library's own time limit costs an AbortSignal for each command, and all that is awaited here has an end already.
export const COMMANDS = { timeout: 0, typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } } as const;

/** Certificates in PEM for connections by `rediss:`: the authorities that are trusted, and this side's own. */
export type RedisTls = Readonly<{ ca?: string; cert?: string; key?: string }>;

/** A connection that queues nothing while the server is away. `url` may be the path of a socket. */
export function connectionTo(url: string, tls: RedisTls = {}) {
  return createClient({
    ...(url.startsWith('/') ? { socket: { path: url, ...SOCKET } } : { url, socket: socketTo(url, tls) }),
    disableOfflineQueue: true,
    commandOptions: COMMANDS,
  }).withTypeMapping(COMMANDS.typeMapping);
}

/** A new object for each client: the library writes the address into it. */
export function socketTo(url: string, tls: RedisTls) {
  return url.startsWith('rediss:') ? { ...SOCKET, tls: true as const, ...tls } : { ...SOCKET };
}

/**
 * Does something each second, such as asking a server that is silent. The library's own timer would go on for a client
 * that was closed while it connected, and keep the process alive.
 */
export function eachSecond(work: () => void): Disposable {
  const timer = setInterval(work, PING_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** The keys of one server that match, with their values. */
export async function* entriesOf(client: Client, pattern: string): AsyncGenerator<[string, Buffer | null][]> {
  let cursor = '0';
  do {
    const page = await client.scan(Buffer.from(cursor), { MATCH: pattern, COUNT: SCAN_PAGE });
    cursor = page.cursor.toString();
    // One by one: in a cluster they lie in different slots. For a value that is no string MGET gives null, GET an error.
    const values = await Promise.all(page.keys.map(async (key) => (await client.mGet([key]))[0] ?? null));
    if (values.length > 0) yield values.map((value, index) => [page.keys[index]!.toString(), value]);
  } while (cursor !== '0');
}

function reconnectStrategy(attempts: number): number {
  return Math.min(50 * 2 ** attempts, 1000);
}
