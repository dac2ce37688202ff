import { MAX_SOCKET_PATH_BYTES, type Wrong } from './problem.ts';
import type { Config } from './schema.ts';
import { checkAuthorities, checkTls } from './tls.ts';

/** Checks which keys the kind of the store needs, and the addresses in them. */
export function checkStore({ store }: Config, wrong: Wrong): void {
  if (store.kind === 'sqlite' && store.path === undefined) wrong(['store', 'path'], 'sqlite needs a file');
  if (store.kind !== 'sqlite' && store.path !== undefined) wrong(['store', 'path'], `${store.kind} has no file`);
  const { kind, url, sentinels, cluster } = store;
  if (kind === 'redis' && url === undefined && cluster === undefined) wrong(['store', 'url'], 'redis needs a url');
  if (cluster !== undefined && url !== undefined) wrong(['store', 'url'], 'a cluster has its addresses under cluster');
  if (cluster !== undefined && sentinels !== undefined) wrong(['store', 'sentinels'], 'a cluster has no sentinels');
  for (const key of ['url', 'sentinels', 'cluster'] as const) {
    if (kind !== 'redis' && store[key] !== undefined) wrong(['store', key], `${kind} has no ${key}`);
  }
  checkStoreTls(store, wrong);
  if (sentinels !== undefined && url !== undefined && !isRedisUrl(url)) {
    wrong(['store', 'url'], 'with sentinels redis://NAME is expected');
  } else if (kind === 'redis' && url !== undefined && !isRedisPlace(url)) {
    wrong(['store', 'url'], `redis://host:port or the path of a socket is expected, not "${url}"`);
  }
  for (const [key, list = []] of Object.entries({ sentinels, cluster })) {
    for (const [index, text] of list.entries()) {
      if (!isRedisUrl(text)) wrong(['store', key, index], `redis://host:port is expected, not "${text}"`);
    }
  }
}

function checkStoreTls({ url, sentinels = [], cluster = [], tls }: Config['store'], wrong: Wrong): void {
  if (tls === undefined) return;
  const path = ['store', 'tls'];
  if (![url ?? '', ...sentinels, ...cluster].some((server) => server.startsWith('rediss:')))
    wrong(path, 'it is for rediss://, and no server has that');
  const { caFile, certFile, keyFile } = tls;
  if ((certFile === undefined) !== (keyFile === undefined)) wrong(path, 'certFile and keyFile belong together');
  try {
    if (caFile !== undefined) checkAuthorities(caFile);
    if (certFile !== undefined && keyFile !== undefined) checkTls({ certFile, keyFile });
  } catch (error) {
    wrong(path, error instanceof Error ? error.message : String(error));
  }
}

function isRedisUrl(text: string): boolean {
  return /^rediss?:\/\/[^/]+\/?$/.test(text) && URL.canParse(text);
}

/** A server with user, password and the number of a database, or a socket. */
function isRedisPlace(text: string): boolean {
  if (text.startsWith('/')) return Buffer.byteLength(text) <= MAX_SOCKET_PATH_BYTES && !text.includes('\0');
  const url = URL.parse(text);
  if (url === null || !/^rediss?:$/.test(url.protocol) || !/^\/?\d*$/.test(url.pathname)) return false;
  return [url.username, url.password].every(isDecodable);
}

function isDecodable(text: string): boolean {
  return !text.replaceAll(/%[0-9a-f]{2}/gi, '').includes('%');
}
