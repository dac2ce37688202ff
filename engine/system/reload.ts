import { hostname } from 'node:os';

import type { Config } from '../config/daemon-config.ts';
import { reloadedConfig, type LiveConfig } from '../config/live-config.ts';
import type { Engine } from '../engine.ts';
import type { Runtimes } from '../runtime/runtimes.ts';

type Needs = Pick<Engine, 'daemonId' | 'events' | 'log' | 'runtimes'>;

/**
 * Applies new settings as a whole; running containers do not change. Throws, and changes nothing, when the runtimes
 * cannot be used.
 */
export function reloadSettings(engine: Needs, live: LiveConfig, next: Config): void {
  const { config, waiting } = reloadedConfig(live.current, next);
  engine.runtimes.use(config);
  live.replace(config);
  engine.log.level = config.logLevel;
  if (waiting.length > 0) engine.log.warn({ settings: waiting }, 'these settings take effect at the next start');
  engine.events.emit('daemon', 'reload', engine.daemonId, reloadAttributes(config, engine.runtimes));
  engine.log.info('reloaded the configuration');
}

/** The event's attributes as in dockerd. Settings that only dockerd has get the value for "none". */
function reloadAttributes(config: Config, runtimes: Runtimes): Record<string, string> {
  return {
    'allow-nondistributable-artifacts': '[]',
    'cluster-advertise': '',
    'cluster-store': '',
    'cluster-store-opts': 'null',
    debug: String(config.debug),
    'default-cgroupns-mode': 'host',
    'default-ipc-mode': 'shareable',
    'default-runtime': runtimes.defaultName,
    'default-shm-size': '67108864',
    features: 'map[]',
    'insecure-registries': JSON.stringify(config.insecureRegistries),
    labels: JSON.stringify(config.labels),
    'live-restore': String(config.liveRestore),
    'max-concurrent-downloads': String(config.maxConcurrentDownloads),
    'max-concurrent-uploads': String(config.maxConcurrentUploads),
    'max-download-attempts': '0',
    name: hostname(),
    'registry-mirrors': JSON.stringify(config.registryMirrors),
    runtimes: runtimes
      .all()
      .map(({ name, settings }) => `${name}:${settings.path}`)
      .join(' '),
    'shutdown-timeout': String(config.shutdownTimeoutSeconds),
  };
}
