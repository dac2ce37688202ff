import { isDeepStrictEqual } from 'node:util';

import type { Config } from './config/schema.ts';

/** Settings that are only read at the start. */
const AT_START = ['listen', 'workers', 'store', 'admin', 'decisions'] as const;

/** The settings that a reload brings, and the keys that have changed but keep their old value until a restart. */
export function reloadable(before: Config, next: Config): { config: Config; needRestart: string[] } {
  const needRestart = AT_START.filter((key) => !isDeepStrictEqual(before[key], next[key]));
  const { listen, workers, store, admin, decisions } = before;
  const { decisions: _, ...others } = next;
  const kept = { listen, workers, store, admin, ...(decisions && { decisions }) };
  return { config: { ...others, ...kept }, needRestart };
}
