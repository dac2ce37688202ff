import { ClusterLink } from './links/cluster-link.ts';
import type { RedisTls } from './links/connection.ts';
import type { Link, LinkEvents } from './links/link.ts';
import { SentinelLink } from './links/sentinel-link.ts';
import { SingleLink } from './links/single-link.ts';

export type RedisStoreOptions = Readonly<{
  /** `redis://…`, `rediss://…`, or the path of a socket. With `sentinels` its host is the name of the master. */
  url?: string;
  /** Servers of Sentinel, which say where the master is. */
  sentinels?: readonly string[];
  /** Servers of a cluster; some are enough, which know the others. */
  cluster?: readonly string[];
  /** For `rediss://`. Default: the authorities that Node trusts, and no certificate of this side. */
  tls?: RedisTls;
  /** Begins every key. */
  prefix?: string;
  /** No answer of the server is awaited longer than this (500). */
  timeoutMs?: number;
  /** Requests under way in a gateway that was killed count for this long. */
  leaseSeconds?: number;
  /** Answer refusals that are certain until a reset without asking the server. Default true. */
  rememberRefusals?: boolean;
  /** Epoch milliseconds, for tests. Default: the server's clock. */
  now?: () => number;
  /** Told about the connection's troubles; requests are answered all the same. */
  reportError?: (error: unknown) => void;
  /** The server answers again, after troubles or a time without an answer. */
  reportBack?: () => void;
}>;

export function linkTo(
  { url = 'redis://127.0.0.1:6379', sentinels, cluster, tls }: RedisStoreOptions,
  events: LinkEvents,
): Link {
  if (cluster !== undefined) return new ClusterLink(cluster, events, tls);
  return sentinels === undefined ? new SingleLink(url, events, tls) : new SentinelLink(url, sentinels, events, tls);
}
