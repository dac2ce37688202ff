import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as timeout } from 'node:timers/promises';

import { MemoryStore } from '@gantry/limiter/memory/store.ts';
import { RedisStore } from '@gantry/limiter/redis/store.ts';
import { SqliteStore } from '@gantry/limiter/sqlite/store.ts';

import { redisServersOf } from './config/redis-servers.ts';
import type { Config } from './config/schema.ts';
import type { GatewayLog } from './log.ts';

type Settings = Pick<Config, 'store'>;

/** A store whose counts are in one process, which decides at once. */
export type LocalStore = MemoryStore | SqliteStore;

/** How long a start waits for Redis. After that the gateway starts, and `store.onFailure` decides. */
const MAX_WAIT_MS = 2000;

/**
 * Opens the configured store. Failures that concern no single request are logged.
 *
 * Resolves when Redis is connected, so that the first requests are not refused.
 */
export async function openStore({ store }: Settings, log: GatewayLog): Promise<LocalStore | RedisStore> {
  if (store.kind !== 'redis') return openLocalStore({ store }, log);
  const { prefix, timeoutMs, leaseSeconds } = store;
  const reportError = (error: unknown): void => log.storeAway(error);
  const reportBack = (): void => log.storeBack();
  const opened = new RedisStore({ ...redisServersOf(store), prefix, timeoutMs, leaseSeconds, reportError, reportBack });
  const enough = new AbortController();
  // The failure was reported.
  const ready = opened.ready().catch(() => undefined);
  await Promise.race([ready, timeout(MAX_WAIT_MS, undefined, { signal: enough.signal }).catch(() => undefined)]);
  enough.abort();
  return opened;
}

export function openLocalStore({ store }: Settings, log: GatewayLog): LocalStore {
  if (store.kind !== 'sqlite' || store.path === undefined) return new MemoryStore();
  mkdirSync(dirname(store.path), { recursive: true });
  return new SqliteStore(store.path, { reportError: (error) => log.failure('store', error) });
}
