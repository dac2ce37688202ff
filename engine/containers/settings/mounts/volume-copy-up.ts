import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, readdirSync } from 'node:fs';
import { readdir } from 'node:fs/promises';

import { openDirectoryBeneath, openRoot } from '../../../host/files/openat.ts';
import type { Layers } from '../../../layers/layers.ts';
import type { Clock } from '../../../lib/clock.ts';
import { EngineError, hasCode } from '../../../lib/errors.ts';
import { mountVolumes, releaseVolumes, type VolumeMountNeeds } from '../../runs/preparation/volume-mounts.ts';
import type { Container, MountPoint } from '../../store.ts';

type Needs = VolumeMountNeeds & { clock: Clock; layers: Layers };

/** Fills empty volumes with the image's files at their path, as docker does when a container is created. */
export async function copyUpVolumes(engine: Needs, container: Container): Promise<void> {
  const { id } = container;
  const mounts = container.mounts.filter(({ type, copyUp }) => type === 'volume' && copyUp);
  if (mounts.length === 0) return;
  const wanted = mounts.filter((mount) => needsMount(engine, mount) || isEmpty(mount.source));
  if (wanted.length === 0) return;
  await using undo = new AsyncDisposableStack();
  const root = undo.use(await engine.layers.mountOnHost(id));
  // A volume without files in the image is not mounted, because an unreachable server is an error of the start.
  const filled = wanted.filter(({ destination }) => isInside(root.path, destination));
  undo.defer(async () => await releaseVolumes(engine, { id, mounts: filled }));
  for (const { destination, source } of await mountVolumes(engine, { id, mounts: filled })) {
    if ((await readdir(source)).length === 0) await copyFolder(root.path, destination, source);
  }
}

function needsMount({ volumes, volumeDrivers }: Needs, { name = '' }: MountPoint): boolean {
  const volume = volumes.get(name);
  return volume !== undefined && volumeDrivers.find(volume.driver).needsMount(volume);
}

function isEmpty(folder: string): boolean {
  return readdirSync(folder).length === 0;
}

function isInside(root: string, path: string): boolean {
  const folder = openInside(root, path);
  if (folder !== undefined) closeSync(folder);
  return folder !== undefined;
}

async function copyFolder(root: string, path: string, target: string): Promise<void> {
  const folder = openInside(root, path);
  if (folder === undefined) return;
  try {
    // Through the descriptor: a symbolic link of the image cannot lead out of its root.
    const copy = spawn('cp', ['-a', '/proc/self/fd/3/.', target], { stdio: ['ignore', 'ignore', 'pipe', folder] });
    let complaint = '';
    copy.stderr!.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
    const [code] = (await once(copy, 'close')) as [number];
    if (code !== 0) throw new EngineError('failed', `the volume at ${path} could not be filled: ${complaint.trim()}`);
  } finally {
    closeSync(folder);
  }
}

function openInside(root: string, path: string): number | undefined {
  const top = openRoot(root);
  try {
    return openDirectoryBeneath(top, path.replace(/^\/+/, ''));
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'EXDEV'].some((code) => hasCode(error, code))) return undefined;
    throw error;
  } finally {
    closeSync(top);
  }
}
