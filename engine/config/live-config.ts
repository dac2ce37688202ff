import type { Config } from './daemon-config.ts';

/** Settings that only a start of the daemon can change: listeners, folders, the bridge, cgroups. */
const FIXED = [
  'hosts',
  'dataRoot',
  'execRoot',
  'pidfile',
  'group',
  'bridge',
  'authorizationPlugins',
  'pluginFolders',
  'bip',
  'ipv6',
  'fixedCidrV6',
  'defaultAddressPools',
  'mtu',
  'tls',
  'tlsverify',
  'tlscacert',
  'tlscert',
  'tlskey',
  'insecureTcp',
  'metricsAddr',
  'page',
  'pageReadOnly',
  'minApiVersion',
  'maxApiVersion',
  'defaultApiVersion',
  'cgroupDriver',
  'cgroupParent',
  'usernsRemap',
  'realtime',
  'maxConcurrentDownloads',
  'nodeGenericResources',
] as const satisfies readonly (keyof Config)[];

/**
 * The settings after a reload: those of `next`, except those that only a start can change. `waiting` names the latter
 * where they differ.
 */
export function reloadedConfig(current: Config, next: Config): { config: Config; waiting: string[] } {
  // Limits and tokens change at once; turning limits on or off needs a start.
  const switched = (current.apiRateLimit === undefined) !== (next.apiRateLimit === undefined);
  const keys = switched ? ([...FIXED, 'apiRateLimit'] as const) : FIXED;
  const fixed = Object.fromEntries(keys.map((key) => [key, current[key]]));
  const waiting = keys.filter((key) => JSON.stringify(current[key]) !== JSON.stringify(next[key]));
  return { config: Object.freeze({ ...next, ...fixed }), waiting };
}

/** The settings in force. Readers ask for `current` each time, and keep no copy. */
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
