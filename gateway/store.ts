import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';

import { MemoryStore } from '@gantry/limiter/memory/store.ts';
import { RedisStore } from '@gantry/limiter/redis/store.ts';
import { SqliteStore } from '@gantry/limiter/sqlite/store.ts';

import type { Config } from './config/schema.ts';

type Settings = Pick<Config, 'store'>;
type Report = (error: unknown) => void;

/** A store whose counts are in one process, which decides at once. */
export type LocalStore = MemoryStore | SqliteStore;

/** Opens the store that the configuration names. `report` hears of troubles that no request is waiting for. */
export function openStore({ store }: Settings, report: Report): LocalStore | RedisStore {
  if (store.kind !== 'redis') return openLocalStore({ store }, report);
  const { url = '', prefix, timeoutMs, leaseSeconds } = store;
  return new RedisStore({ url, prefix, timeoutMs, leaseSeconds, reportError: report });
}

export function openLocalStore({ store }: Settings, report: Report): LocalStore {
  if (store.kind !== 'sqlite' || store.path === undefined) return new MemoryStore();
  mkdirSync(dirname(store.path), { recursive: true });
  return new SqliteStore(store.path, { flushMs: store.flushMs, reportError: report });
}
