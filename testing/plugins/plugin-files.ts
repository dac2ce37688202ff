import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { TarWriter } from '../archives/tar-writer.ts';
import type { Registries } from '../registries/registries.ts';

type Kind = 'VolumeDriver' | 'authz' | 'NetworkDriver';
const TYPES: Readonly<Record<Kind, readonly string[]>> = {
  VolumeDriver: ['docker.volumedriver/1.0'],
  authz: ['docker.authz/1.0'],
  NetworkDriver: ['docker.networkdriver/1.0', 'docker.ipamdriver/1.0'],
};

const CONFIG = 'application/vnd.docker.plugin.v1+json';
const MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';

/**
 * The input of `docker plugin create`: a folder with `config.json` and `rootfs`, of the program `plugin.c`; returns its
 * path.
 */
export function writePlugin(folder: string, kind: Kind): Buffer {
  const rootfs = join(folder, 'rootfs');
  mkdirSync(rootfs, { recursive: true });
  const program = join(rootfs, 'plugin');
  compile(program);
  writeFileSync(join(folder, 'config.json'), JSON.stringify(pluginConfig(kind)));
  return readFileSync(program);
}

/** The program alone. */
export function pluginProgram(): Buffer {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-plugin-'));
  compile(join(place.path, 'plugin'));
  return readFileSync(join(place.path, 'plugin'));
}

function compile(program: string): void {
  const source = join(import.meta.dirname, 'plugin.c');
  execFileSync('cc', ['-static', '-O1', '-Wall', '-Werror', '-o', program, source], { stdio: 'pipe' });
}

/** Puts a plugin with layers of these files into a registry, without dockerd. */
export async function putPlugin(
  registries: Registries,
  registry: string,
  config: object,
  ...layers: Readonly<Record<string, Buffer>>[]
): Promise<void> {
  const described = await registries.putBlob(registry, Buffer.from(JSON.stringify(config)), CONFIG);
  const blobs = [];
  for (const files of layers) blobs.push(await registries.putBlob(registry, layer(files)));
  const manifest = { schemaVersion: 2, mediaType: MANIFEST, config: described, layers: blobs };
  await registries.putManifest(registry, 'latest', manifest);
}

function layer(files: Readonly<Record<string, Buffer>>): Buffer {
  const tar = new TarWriter();
  for (const [name, content] of Object.entries(files)) tar.add({ name, content, mode: 0o755 });
  return gzipSync(tar.end());
}

/** `mode`: see `plugin.c`. */
export function pluginConfig(kind: Kind, mode = ''): object {
  return {
    Description: 'a plugin for tests',
    Documentation: 'https://docs.example/',
    Interface: { Types: TYPES[kind], Socket: 'test.sock' },
    Entrypoint: ['/plugin'],
    WorkDir: '/',
    Network: { Type: 'host' },
    PropagatedMount: '/mnt/volumes',
    Linux: {
      Capabilities: ['CAP_SYS_ADMIN', ...(kind === 'NetworkDriver' ? ['CAP_NET_ADMIN'] : [])],
      Devices: [{ Name: 'null', Path: '/dev/null', Settable: null }],
    },
    Mounts: [
      {
        Name: 'machine',
        Description: 'a file of the machine',
        Source: '/etc/hostname',
        Destination: '/machine',
        Type: 'bind',
        Options: ['rbind', 'ro'],
      },
    ],
    Env: [
      { Name: 'PLUGIN_KINDS', Value: kind === 'NetworkDriver' ? `"${kind}","IpamDriver"` : `"${kind}"` },
      { Name: 'PLUGIN_MODE', Value: mode, Settable: ['value'] },
    ],
    Args: { Name: 'words', Value: ['one', 'two'], Settable: ['value'] },
  };
}
