import type { RedisStoreOptions } from '@gantry/limiter/redis/options.ts';

import { readFile } from '../lib/reason.ts';
import type { Config } from './schema.ts';

type Servers = Pick<RedisStoreOptions, 'url' | 'sentinels' | 'cluster' | 'tls'>;

/** The servers of the store, with the certificates that are in files. Throws when one of them cannot be read. */
export function redisServersOf({ url, sentinels, cluster, tls }: Config['store']): Servers {
  return {
    ...(url && { url }),
    ...(sentinels && { sentinels }),
    ...(cluster && { cluster }),
    ...(tls && { tls: certificatesIn(tls) }),
  };
}

function certificatesIn({ caFile, certFile, keyFile }: NonNullable<Config['store']['tls']>) {
  return {
    ...(caFile && { ca: readFile(caFile) }),
    ...(certFile && { cert: readFile(certFile) }),
    ...(keyFile && { key: readFile(keyFile) }),
  };
}
