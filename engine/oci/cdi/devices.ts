import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { Value } from 'typebox/value';

import { parseBoundedJson } from '../../lib/bounded-json.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { DeviceSpec, type Edits } from './schema.ts';

/** Further changes of a container, for the devices of the Container Device Interface. */
export type DeviceEdits = Required<Edits>;

/** A device, with the edits for all devices of its file. `spec` is that file. */
type Found = Readonly<{ edits: Edits; shared: Edits; spec: DeviceSpec }>;

/**
 * The edits for devices such as `vendor.com/class=name`. The files are read at each start: drivers write them at any time.
 * Throws `failed` for devices that no file has, or that two files of one folder have.
 */
export async function deviceEdits(folders: readonly string[], names: readonly string[]): Promise<DeviceEdits> {
  const wanted = [...new Set(names)];
  if (wanted.length === 0) return joined([]);
  const devices = await readDevices(folders);
  const missing = wanted.filter((name) => devices.get(name) === undefined);
  if (missing.length > 0) {
    throw new EngineError('failed', `CDI device injection failed: unresolvable CDI devices ${missing.join(', ')}`);
  }
  const found = wanted.map((name) => devices.get(name)!);
  const shared = new Map(found.map((device) => [device.spec, device.shared]));
  return joined([...found.map(({ edits }) => edits), ...shared.values()]);
}

/** The names of all devices, sorted. */
export async function deviceNames(folders: readonly string[]): Promise<string[]> {
  const devices = await readDevices(folders);
  return [...devices].flatMap(([name, device]) => (device === undefined ? [] : [name])).toSorted();
}

/** By name; undefined for one that two files of the same folder have. A later folder goes before an earlier one. */
async function readDevices(folders: readonly string[]): Promise<Map<string, Found | undefined>> {
  const devices = new Map<string, Found | undefined>();
  for (const path of folders) {
    const own = new Map<string, Found | undefined>();
    for (const name of filesOf(path)) {
      const spec = await readSpec(join(path, name));
      for (const device of spec?.devices ?? []) {
        const key = `${spec!.kind}=${device.name}`;
        const found = { edits: device.containerEdits, shared: spec!.containerEdits ?? {}, spec: spec! };
        own.set(key, own.has(key) ? undefined : found);
      }
    }
    for (const [key, found] of own) devices.set(key, found);
  }
  return devices;
}

function filesOf(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => /\.(json|yaml)$/.test(name));
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return [];
    throw error;
  }
}

/** Undefined for a file that is none of these, as in dockerd: another file's devices still work. */
async function readSpec(path: string): Promise<DeviceSpec | undefined> {
  const text = readFileSync(path, 'utf8');
  try {
    const spec = path.endsWith('.yaml') ? await parseYaml(text) : parseBoundedJson(text);
    return Value.Check(DeviceSpec, spec) ? spec : undefined;
  } catch (error) {
    if (error instanceof Error) return undefined;
    throw error;
  }
}

/** Loaded when there is such a file: few machines have one. */
async function parseYaml(text: string): Promise<unknown> {
  const { parse } = await import('yaml');
  return parse(text, { maxAliasCount: 100 });
}

function joined(all: readonly Edits[]): DeviceEdits {
  return {
    env: all.flatMap(({ env = [] }) => env),
    deviceNodes: all.flatMap(({ deviceNodes = [] }) => deviceNodes),
    mounts: all.flatMap(({ mounts = [] }) => mounts),
    hooks: all.flatMap(({ hooks = [] }) => hooks),
  };
}
