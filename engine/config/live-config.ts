import type { Config } from './daemon-config.ts';

/** What a start decides for good: listeners, folders, the bridge. */
const FIXED = [
  'hosts',
  'dataRoot',
  'execRoot',
  'pidfile',
  'group',
  'bridge',
  'bip',
  'mtu',
  'tls',
  'tlsverify',
  'tlscacert',
  'tlscert',
  'tlskey',
  'insecureTcp',
] as const satisfies readonly (keyof Config)[];

/**
 * The settings after a reload: those of `next`, but what a start decides for good stays, and is named in `waiting` where
 * it differs.
 */
export function reloadedConfig(current: Config, next: Config): { config: Config; waiting: string[] } {
  // Limits and tokens change at once; whether there are any does not.
  const switched = (current.apiRateLimit === undefined) !== (next.apiRateLimit === undefined);
  const keys = switched ? ([...FIXED, 'apiRateLimit'] as const) : FIXED;
  const fixed = Object.fromEntries(keys.map((key) => [key, current[key]]));
  const waiting = keys.filter((key) => JSON.stringify(current[key]) !== JSON.stringify(next[key]));
  return { config: Object.freeze({ ...next, ...fixed }), waiting };
}

/** The settings in force, for those who read them when they need them. */
export class LiveConfig {
  #current: Config;

  constructor(config: Config) {
    this.#current = config;
  }

  get current(): Config {
    return this.#current;
  }

  replace(config: Config): void {
    this.#current = config;
  }
}
