import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

import { MemoryStore } from '@gantry/limiter/memory/store.ts';
import { RedisStore } from '@gantry/limiter/redis/store.ts';
import { SqliteStore } from '@gantry/limiter/sqlite/store.ts';

import type { Config } from './config/schema.ts';
import type { GatewayLog } from './log.ts';

type Settings = Pick<Config, 'store'>;

/** A store whose counts are in one process, which decides at once. */
export type LocalStore = MemoryStore | SqliteStore;

/** Opens the store that the configuration names. The log hears of troubles that no request is waiting for. */
export function openStore({ store }: Settings, log: GatewayLog): LocalStore | RedisStore {
  if (store.kind !== 'redis') return openLocalStore({ store }, log);
  const { url, sentinels, cluster, prefix, timeoutMs, leaseSeconds } = store;
  const servers = { ...(url && { url }), ...(sentinels && { sentinels }), ...(cluster && { cluster }) };
  const reportError = (error: unknown): void => log.storeAway(error);
  const reportBack = (): void => log.storeBack();
  return new RedisStore({ ...servers, prefix, timeoutMs, leaseSeconds, reportError, reportBack });
}

export function openLocalStore({ store }: Settings, log: GatewayLog): LocalStore {
  if (store.kind !== 'sqlite' || store.path === undefined) return new MemoryStore();
  mkdirSync(dirname(store.path), { recursive: true });
  return new SqliteStore(store.path, { flushMs: store.flushMs, reportError: (error) => log.failure('store', error) });
}
