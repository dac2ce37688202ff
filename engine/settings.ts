import type { Config } from './config/daemon-config.ts';
import { readConfig } from './config/read.ts';
import { apiSettingsChecks } from './http/versions/settings-checks.ts';
import { logSettingsChecks } from './logs/settings-checks.ts';
import { networkSettingsChecks } from './networks/settings-checks.ts';
import { registrySettingsChecks } from './registry/settings-checks.ts';

/** The daemon's settings, with every domain's checks of its own. Throws `ConfigError` with all problems. */
export function readSettings(argv: readonly string[]): Config {
  return readConfig(argv, [apiSettingsChecks, logSettingsChecks, networkSettingsChecks, registrySettingsChecks]);
}
