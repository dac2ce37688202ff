import {
  ClientClosedError,
  ClientOfflineError,
  ConnectionTimeoutError,
  DisconnectsClientError,
  ErrorReply,
  RootNodesUnavailableError,
  SocketClosedUnexpectedlyError,
  SocketTimeoutError,
} from '@redis/client';

/** Replies by their first word. */
const REPLIES: ReadonlyMap<string, string> = new Map([
  ['OOM', 'redis has no memory left (maxmemory)'],
  ['READONLY', 'redis is a replica, which takes no writes'],
  ['LOADING', 'redis is still loading its data'],
  ['NOAUTH', 'redis wants a password: store.url has none'],
  ['WRONGPASS', 'redis refuses the user or the password of store.url'],
  ['NOPERM', 'redis forbids its user a command or a key that the gateway needs'],
  ['MISCONF', 'redis cannot save its data and takes no writes'],
  ['NOREPLICAS', 'redis has too few replicas and takes no writes'],
  ['MASTERDOWN', 'redis is a replica without its master'],
  ['CLUSTERDOWN', 'the cluster has no server for a part of the keys'],
  ['TRYAGAIN', 'the cluster is moving keys'],
  ['BUSY', 'redis is busy with another script'],
]);

const ENDED = [SocketClosedUnexpectedlyError, DisconnectsClientError];
const AWAY = [ClientClosedError, ClientOfflineError];

/** Says in plain words why Redis has failed; undefined for errors that are none of Redis or its client. */
export function reasonOfRedis(error: unknown): string | undefined {
  if (error instanceof ErrorReply) {
    const [word = ''] = error.message.split(' ');
    return REPLIES.get(word) ?? `redis has refused a command (${/^[A-Z]+$/.test(word) ? word : 'ERR'})`;
  }
  if (ENDED.some((one) => error instanceof one)) return 'the connection to redis broke';
  if (AWAY.some((one) => error instanceof one)) return 'redis is not connected';
  if (error instanceof ConnectionTimeoutError) return 'redis takes no connection in time';
  if (error instanceof SocketTimeoutError) return 'redis says nothing';
  return error instanceof RootNodesUnavailableError ? 'no server of the cluster can be reached' : undefined;
}
