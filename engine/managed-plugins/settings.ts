import { EngineError } from '../lib/errors.ts';
import { configOf, type PluginConfig } from './plugin-config.ts';
import type { InstalledPlugin } from './store.ts';

/** The field of each kind that may be changed, if the plugin says so. */
const FIELDS = { Env: 'value', Mounts: 'source', Devices: 'path', Args: 'value' } as const;
type Kind = keyof typeof FIELDS;
type Settable = Readonly<{ Name?: string | null; Settable?: string[] | null }>;

/** The configuration with the settings that the user has changed. */
export function configInForce(plugin: InstalledPlugin): PluginConfig {
  const config = configOf(plugin);
  const { settings = {} } = plugin;
  const changed = (kind: Kind, { Name }: Settable): string | undefined => settings[`${Name}.${FIELDS[kind]}`];
  const { Args, Env, Linux, Mounts } = config;
  return {
    ...config,
    Env: (Env ?? []).map((each) => ({ ...each, Value: changed('Env', each) ?? each.Value })),
    Mounts: (Mounts ?? []).map((each) => ({ ...each, Source: changed('Mounts', each) ?? each.Source })),
    Linux: {
      ...Linux,
      Devices: (Linux?.Devices ?? []).map((each) => ({ ...each, Path: changed('Devices', each) ?? each.Path })),
    },
    ...(Args && { Args: { ...Args, Value: changed('Args', Args)?.split(' ') ?? Args.Value } }),
  };
}

/** Reads changes such as `DEBUG=1` or `machine.source=/etc`. Throws `invalid` for one that the plugin does not allow. */
export function readSettings(config: PluginConfig, changes: readonly string[]): Record<string, string> {
  return Object.fromEntries(changes.map((change) => readSetting(config, change)));
}

function readSetting({ Args, Env, Linux, Mounts }: PluginConfig, change: string): [key: string, value: string] {
  const [, written = '', value = ''] = /^([^=]+)(?:=(.*))?$/s.exec(change) ?? [];
  if (written === '') throw new EngineError('invalid', `a setting is NAME[.FIELD]=VALUE, not "${change}"`);
  const all: Readonly<Record<Kind, readonly Settable[]>> = {
    Env: Env ?? [],
    Mounts: Mounts ?? [],
    Devices: Linux?.Devices ?? [],
    Args: Args ? [Args] : [],
  };
  const dot = written.lastIndexOf('.');
  const [name, field] = dot > 0 ? [written.slice(0, dot), written.slice(dot + 1)] : [written, ''];
  for (const [kind, own] of Object.entries(FIELDS) as [Kind, string][]) {
    const found = all[kind].find(({ Name }) => Name === name);
    if (found !== undefined) return [`${name}.${fieldOf(found, { field, own, written })}`, value];
  }
  throw new EngineError('invalid', `setting "${written}" not found in the plugin configuration`);
}

function fieldOf({ Settable }: Settable, asked: { field: string; own: string; written: string }): string {
  const settable = Settable ?? [];
  if (asked.field === '' && settable.length > 1)
    throw new EngineError('invalid', `several fields of "${asked.written}" are settable: name one of them`);
  const field = asked.field === '' ? settable[0] : asked.field;
  if (field !== asked.own || !settable.includes(field))
    throw new EngineError('invalid', `"${asked.written}" is not settable`);
  return field;
}
