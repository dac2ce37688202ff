import { resolve } from 'node:path';

import { mapOf, READ, splitOnce } from '../command-line/values.ts';
import { UsageError } from '../exit-codes.ts';
import type { CreateRequest } from './request.ts';

/** `-v`: a bare path is an anonymous volume; a source that begins with a dot is relative to the working directory. */
export function setVolumes({ config, host }: CreateRequest, list: readonly string[]): void {
  for (const volume of list) {
    if (!volume.includes(':')) (config.Volumes ??= {})[volume] = {};
    else (host.Binds ??= []).push(volume.startsWith('.') ? volume.replace(/^[^:]*/, (path) => resolve(path)) : volume);
  }
}

type Mount = NonNullable<CreateRequest['host']['Mounts']>[number];
type Set = (mount: Mount, value: string) => void;

/** The keys of `--mount`, with the field that each sets and the type that it applies to. */
const KEYS: Readonly<Record<string, { set: Set; only?: string; isFlag?: true }>> = {
  type: { set: (mount, value) => (mount.Type = value.toLowerCase()) },
  source: { set: (mount, value) => (mount.Source = value) },
  target: { set: (mount, value) => (mount.Target = value) },
  readonly: { set: (mount, value) => (mount.ReadOnly = flagOf(value)), isFlag: true },
  consistency: { set: (mount, value) => (mount.Consistency = value) },
  'bind-propagation': { only: 'bind', set: (mount, value) => ((mount.BindOptions ??= {}).Propagation = value) },
  'bind-nonrecursive': {
    only: 'bind',
    set: (mount, value) => ((mount.BindOptions ??= {}).NonRecursive = flagOf(value)),
    isFlag: true,
  },
  'volume-nocopy': {
    only: 'volume',
    set: (mount, value) => ((mount.VolumeOptions ??= {}).NoCopy = flagOf(value)),
    isFlag: true,
  },
  'volume-label': {
    only: 'volume',
    set: (mount, value) => Object.assign(((mount.VolumeOptions ??= {}).Labels ??= {}), mapOf([value])),
  },
  'volume-driver': {
    only: 'volume',
    set: (mount, value) => (((mount.VolumeOptions ??= {}).DriverConfig ??= {}).Name = value),
  },
  'volume-opt': {
    only: 'volume',
    set: (mount, value) =>
      Object.assign((((mount.VolumeOptions ??= {}).DriverConfig ??= {}).Options ??= {}), mapOf([value])),
  },
  'tmpfs-size': { only: 'tmpfs', set: (mount, value) => ((mount.TmpfsOptions ??= {}).SizeBytes = bytesOf(value)) },
  'tmpfs-mode': { only: 'tmpfs', set: (mount, value) => ((mount.TmpfsOptions ??= {}).Mode = modeOf(value)) },
};
const SHORTER: Readonly<Record<string, string>> = {
  src: 'source',
  destination: 'target',
  dst: 'target',
  ro: 'readonly',
};

/** `--mount`: `type=volume,src=pages,dst=/www,readonly`. */
export function setMounts({ host }: CreateRequest, list: readonly string[]): void {
  host.Mounts = list.map(mountOf);
}

function mountOf(text: string): Mount {
  const mount: Mount = { Type: 'volume' };
  const wrong = (reason: string): UsageError =>
    new UsageError(`invalid argument "${text}" for "--mount" flag: ${reason}`);
  const owners: [key: string, only: string][] = [];
  // A word in quotes may have commas, as in CSV.
  for (const [, quoted, plain = ''] of text.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)) {
    const word = quoted?.replaceAll('""', '"') ?? plain;
    const [name, value] = splitOnce(word, '=');
    const key = SHORTER[name.trim().toLowerCase()] ?? name.trim().toLowerCase();
    const known = Object.hasOwn(KEYS, key) ? KEYS[key]! : undefined;
    if (known === undefined) throw wrong(`unknown key '${name}'`);
    if (!word.includes('=') && known.isFlag !== true) throw wrong(`'${name}' needs a value`);
    if (known.only !== undefined) owners.push([key, known.only]);
    try {
      known.set(mount, word.includes('=') ? value : 'true');
    } catch (error) {
      throw error instanceof UsageError ? wrong(`${name}: ${error.message}`) : error;
    }
  }
  const stranger = owners.find(([, only]) => only !== mount.Type);
  if (stranger !== undefined) throw wrong(`'${stranger[0]}' does not apply to the type '${mount.Type}'`);
  if ((mount.Target ?? '') === '') throw wrong('target is required');
  if (mount.Type === 'bind' && mount.Source !== undefined) mount.Source = resolve(mount.Source);
  return mount;
}

function flagOf(value: string): boolean {
  const flag = READ.boolean(value);
  if (flag === undefined) throw new UsageError('expected true or false');
  return flag;
}

function bytesOf(value: string): number {
  const bytes = READ.bytes(value);
  if (bytes === undefined) throw new UsageError('expected a size');
  return bytes;
}

function modeOf(value: string): number {
  if (!/^[0-7]{1,5}$/.test(value)) throw new UsageError('expected an octal number');
  return Number.parseInt(value, 8);
}
