import { parseReference } from '../images/names/reference.ts';
import { configOf, type PluginConfig } from './plugin-config.ts';
import type { PluginWire } from './schema.ts';
import { configInForce } from './settings.ts';
import type { InstalledPlugin } from './store.ts';

const MANIFEST_VERSION = 'v0';

/**
 * A plugin on the wire; `isOld`: as in 1.24, which has the registry's configuration in another field than later
 * versions.
 */
export function presentPlugin(plugin: InstalledPlugin, isOld: boolean): PluginWire {
  const { id, name, isEnabled } = plugin;
  const read = configOf(plugin);
  const { tag = '' } = parseReference(name);
  const settings = settingsOf(configInForce(plugin));
  return {
    Id: id,
    Name: isOld && tag !== '' ? name.slice(0, -`:${tag}`.length) : name,
    Tag: tag,
    Active: isEnabled,
    Config: isOld ? settings : read,
    Manifest: manifestOf(read),
    Enabled: isEnabled,
    PluginReference: plugin.origin ?? name,
    Settings: settings,
  };
}

function settingsOf({ Mounts, Env, Args, Linux }: PluginConfig): object {
  return {
    Mounts: Mounts ?? [],
    Env: (Env ?? []).map(({ Name, Value }) => `${Name}=${Value ?? ''}`),
    Args: Args?.Value ?? [],
    Devices: Linux?.Devices ?? [],
  };
}

function manifestOf(config: PluginConfig): object {
  return {
    ManifestVersion: MANIFEST_VERSION,
    Description: config.Description ?? '',
    Documentation: config.Documentation ?? '',
    Interface: { Types: config.Interface.Types ?? [], Socket: config.Interface.Socket },
    Entrypoint: config.Entrypoint,
    Workdir: config.WorkDir ?? '',
    User: config.User ?? {},
    Network: { Type: config.Network?.Type ?? '' },
    Capabilities: config.Linux?.Capabilities ?? [],
    Mounts: config.Mounts ?? [],
    Devices: config.Linux?.Devices ?? [],
    Env: config.Env ?? [],
    Args: config.Args ?? {},
  };
}
