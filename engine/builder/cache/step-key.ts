import type { Image } from '../../images/store.ts';
import { sha256 } from '../../layers/chain-id.ts';
import type { RunConfig } from '../../records/run-config.ts';

/** Settings that the cache compares, as in `cache.ts`. */
const COMPARED = ['User', 'Tty', 'Cmd', 'Env', 'Entrypoint', 'Labels', 'ExposedPorts', 'Volumes'] as const;

/** The key of a base image, which is the same on each machine that has it; undefined: `FROM scratch`. */
export function baseKey(image: Image | undefined): string {
  if (image === undefined) return sha256('scratch');
  const { os, architecture, variant, diffIds, wireConfig } = image;
  return sha256(JSON.stringify(['base', os, architecture, variant, diffIds, sorted(wireConfig)]));
}

/** The key of a step on top of another one. Times and ids of images do not count, so that machines agree on it. */
export function stepKey(parent: string, config: RunConfig): string {
  const compared = COMPARED.map((name) => [name, isEmpty(config[name]) ? null : sorted(config[name])]);
  return sha256(JSON.stringify(['step', parent, compared]));
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

/** With the keys of maps in order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, each]) => [key, sorted(each)]));
}
