import { Type, type Static, type TSchema } from 'typebox';

import { readBody } from '../http/values/values.ts';
import { parseBoundedJson, UnboundedJsonError } from '../lib/bounded-json.ts';
import { EngineError } from '../lib/errors.ts';
import { lazyCheck } from '../lib/lazy-check.ts';
import type { Privilege } from './schema.ts';

const Nullable = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]));
const Text = Nullable(Type.String());
const Texts = Nullable(Type.Array(Type.String()));
const Flag = Nullable(Type.Boolean());
const Id = Nullable(Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 }));

const Mount = Type.Object({
  Name: Text,
  Description: Text,
  Settable: Texts,
  Source: Text,
  Destination: Type.String({ pattern: '^/' }),
  Type: Text,
  Options: Texts,
});
export type PluginMount = Static<typeof Mount>;
const Device = Type.Object({ Name: Text, Description: Text, Settable: Texts, Path: Text });
const Variable = Type.Object({ Name: Type.String(), Description: Text, Settable: Texts, Value: Text });
const Arguments = Type.Object({ Name: Text, Description: Text, Settable: Texts, Value: Texts });

/** The configuration of a plugin as in its registry, with docker's names. */
const PluginConfig = Type.Object({
  Description: Text,
  Documentation: Text,
  Interface: Type.Object({ Types: Texts, Socket: Type.String({ pattern: '^[^/]+$' }), ProtocolScheme: Text }),
  Entrypoint: Type.Array(Type.String(), { minItems: 1 }),
  WorkDir: Text,
  User: Nullable(Type.Object({ UID: Id, GID: Id })),
  Network: Nullable(Type.Object({ Type: Text })),
  Linux: Nullable(Type.Object({ Capabilities: Texts, AllowAllDevices: Flag, Devices: Nullable(Type.Array(Device)) })),
  PropagatedMount: Text,
  IpcHost: Flag,
  PidHost: Flag,
  Mounts: Nullable(Type.Array(Mount)),
  Env: Nullable(Type.Array(Variable)),
  Args: Nullable(Arguments),
});
export type PluginConfig = Readonly<Static<typeof PluginConfig>>;

const checked = lazyCheck(PluginConfig);

const decoded = new WeakMap<{ readonly config: string }, PluginConfig>();

/** The configuration of an installed plugin, decoded once for each record. */
export function configOf(plugin: { readonly config: string }): PluginConfig {
  const known = decoded.get(plugin) ?? parsePluginConfig(plugin.config);
  decoded.set(plugin, known);
  return known;
}

/** Such as `volumedriver`. */
export function kindsOf(plugin: { readonly config: string }): string[] {
  return (configOf(plugin).Interface.Types ?? []).map((type) => type.replace(/^docker\.|\/.*$/g, ''));
}

/** Reads a configuration with keys in any case, as Go does. Throws `failed` for anything but the configuration of a plugin. */
export function parsePluginConfig(text: string): PluginConfig {
  let read: unknown;
  try {
    read = readBody(PluginConfig, parseBoundedJson(text));
  } catch (error) {
    const reason = error instanceof UnboundedJsonError ? `cannot be read: ${error.message}` : 'is not JSON';
    throw new EngineError('failed', `the configuration of the plugin ${reason}`, { cause: error });
  }
  if (checked.Check(read)) return read;
  const [, [first]] = checked.Errors(read);
  const where = first?.instancePath || 'it';
  throw new EngineError('failed', `the configuration of the plugin is not valid: ${where} ${first?.message ?? ''}`);
}

/** The permissions of a plugin beyond those of every container: the user sees them before the plugin is enabled. */
export function privilegesOf(config: PluginConfig): Privilege[] {
  const { Network, IpcHost, PidHost, Mounts, Linux } = config;
  const network = Network?.Type ?? '';
  const isOn = ['true'];
  const all: Privilege[] = [
    {
      Name: 'network',
      Description: 'permissions to access a network',
      Value: ['', 'null', 'bridge'].includes(network) ? [] : [network],
    },
    { Name: 'host ipc namespace', Description: 'allow access to host ipc namespace', Value: IpcHost ? isOn : [] },
    { Name: 'host pid namespace', Description: 'allow access to host pid namespace', Value: PidHost ? isOn : [] },
    ...(Mounts ?? []).map(({ Source }) => ({
      Name: 'mount',
      Description: 'host path to mount',
      Value: typeof Source === 'string' ? [Source] : [],
    })),
    ...(Linux?.Devices ?? []).map(({ Path }) => ({
      Name: 'device',
      Description: 'host device to access',
      Value: typeof Path === 'string' ? [Path] : [],
    })),
    {
      Name: 'allow-all-devices',
      Description: "allow 'rwm' access to all devices",
      Value: Linux?.AllowAllDevices ? isOn : [],
    },
    {
      Name: 'capabilities',
      Description: 'list of additional capabilities required',
      Value: Linux?.Capabilities ?? [],
    },
  ];
  return all.filter(({ Value }) => Value.length > 0);
}
