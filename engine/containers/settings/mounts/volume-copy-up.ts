import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fstatSync, readdirSync } from 'node:fs';

import type { Engine } from '../../../engine.ts';
import { holdInRoot, openRoot } from '../../../host/files/openat.ts';
import { EngineError, hasCode } from '../../../lib/errors.ts';
import { holdSource } from '../../runs/preparation/mount-places.ts';
import { mountVolumes, releaseVolumes, type VolumeMountNeeds } from '../../runs/preparation/volume-mounts.ts';
import type { Container, MountPoint } from '../../store.ts';

const MAX_COMPLAINT = 1000;

type Needs = VolumeMountNeeds & Pick<Engine, 'clock' | 'layers'>;

/**
 * Fills empty volumes with the image's files at their path, as docker does when a container is created. Throws `invalid`
 * for a volume over a file of the image.
 */
export async function copyUpVolumes(engine: Needs, container: Container): Promise<void> {
  const { id } = container;
  const mounts = container.mounts.filter(({ type, copyUp }) => type === 'volume' && copyUp);
  if (mounts.length === 0) return;
  const wanted = mounts.filter((mount) => needsMount(engine, mount) || isEmpty(mount));
  if (wanted.length === 0) return;
  await using undo = new AsyncDisposableStack();
  const root = undo.use(await engine.layers.mountOnHost(id));
  const folders = new Map<string, number>();
  for (const { destination } of wanted) {
    const folder = folderInside(root.path, destination);
    if (folder !== undefined) folders.set(destination, undo.adopt(folder, closeSync));
  }
  // A volume without files in the image is not mounted, because an unreachable server is an error of the start.
  const filled = wanted.filter(({ destination }) => folders.has(destination));
  undo.defer(async () => await releaseVolumes(engine, { id, mounts: filled }));
  for (const mount of await mountVolumes(engine, { id, mounts: filled })) {
    const { destination } = mount;
    if (!isEmpty(mount)) continue;
    const target = undo.adopt(holdSource(mount), closeSync);
    await copyFolder(folders.get(destination)!, destination, target);
  }
}

/** Throws `invalid` if a volume at one of these paths would be over a file of a root. */
export function checkVolumePlaces(root: string, paths: readonly string[]): void {
  for (const path of paths) {
    const folder = folderInside(root, path);
    if (folder !== undefined) closeSync(folder);
  }
}

function needsMount({ volumes, volumeDrivers }: Needs, { name = '' }: MountPoint): boolean {
  const volume = volumes.get(name);
  return volume !== undefined && volumeDrivers.find(volume.driver).needsMount(volume);
}

/** Whether it is an empty folder: a missing part of a volume, or one that is a file, is not. */
function isEmpty(mount: MountPoint): boolean {
  let held: number | undefined;
  try {
    held = holdSource(mount);
    return fstatSync(held).isDirectory() && readdirSync(`/proc/self/fd/${held}`).length === 0;
  } catch (error) {
    if (mount.subpath !== undefined && error instanceof EngineError) return false; // the start tells
    throw error;
  } finally {
    if (held !== undefined) closeSync(held);
  }
}

async function copyFolder(folder: number, path: string, target: number): Promise<void> {
  // Through descriptors: a symbolic link cannot lead out of the image or the volume.
  const copy = spawn('cp', ['-a', '/proc/self/fd/3/.', '/proc/self/fd/4/'], {
    stdio: ['ignore', 'ignore', 'pipe', folder, target],
  });
  let complaint = '';
  // Each file may cause a complaint.
  copy.stderr!.on('data', (chunk: Buffer) => (complaint = `${complaint}${chunk.toString()}`.slice(0, MAX_COMPLAINT)));
  const [code] = (await once(copy, 'close')) as [number];
  if (code !== 0) throw new EngineError('failed', `the volume at ${path} could not be filled: ${complaint.trim()}`);
}

/** Holds the image's folder at a path, through its links; undefined if it is missing. Throws `invalid` for a file. */
function folderInside(root: string, path: string): number | undefined {
  const top = openRoot(root);
  try {
    const held = holdInRoot(top, Buffer.from(path).toString('latin1'));
    if (fstatSync(held).isDirectory()) return held;
    closeSync(held);
    throw overFile(path);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    if (hasCode(error, 'ENOTDIR')) throw overFile(path, error);
    if (hasCode(error, 'ELOOP')) throw new EngineError('invalid', `too many links in ${path}`, { cause: error });
    throw error;
  } finally {
    closeSync(top);
  }
}

function overFile(path: string, cause?: unknown): EngineError {
  return new EngineError('invalid', `cannot mount volume over existing file, file exists ${path}`, { cause });
}
