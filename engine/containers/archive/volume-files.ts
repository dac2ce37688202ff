import type { Engine } from '../../engine.ts';
import { newId } from '../../lib/ids.ts';
import { holdVolume } from '../../volumes/claims.ts';
import { mountVolumes, releaseVolumes, type VolumeMountNeeds } from '../runs/preparation/volume-mounts.ts';
import type { FileList } from '../schema.ts';
import type { MountPoint } from '../store.ts';
import type { ViewOfFiles } from './files.ts';
import { listInView } from './list-files.ts';
import { refuseEmptyPath, sendFiles, statInView, type OpenArchive } from './read.ts';

export type VolumeFilesNeeds = VolumeMountNeeds & Pick<Engine, 'clock' | 'copies' | 'locks' | 'volumeClaims'>;

/** Lists a folder of a volume. Throws `notFound`, and `invalid` for anything but a folder. */
export async function listVolumeFiles(
  engine: VolumeFilesNeeds,
  name: string,
  path: string,
  gone: AbortSignal,
): Promise<FileList> {
  await using files = await openVolume(engine, name);
  return await listInView(files, `volume ${name}`, path, gone);
}

/** A path of a volume with all below it as an archive. Throws `notFound`. */
export async function openVolumeArchive(engine: VolumeFilesNeeds, name: string, path: string): Promise<OpenArchive> {
  refuseEmptyPath(path);
  await using undo = new AsyncDisposableStack();
  const files = undo.use(await openVolume(engine, name));
  const stat = await statInView(files, `volume ${name}`, path);
  const parts = undo.move();
  return {
    stat,
    send: async (take, signal) => await sendFiles(files, path, take, signal),
    [Symbol.asyncDispose]: async () => await parts.disposeAsync(),
  };
}

/** A reader is a user of the volume like a container: the volume stays mounted, and is not removed, until both are over. */
async function openVolume(engine: VolumeFilesNeeds, name: string): Promise<AsyncDisposable & ViewOfFiles> {
  const reader = `reader-${newId()}`;
  await using undo = new AsyncDisposableStack();
  const mounts = [await claim(engine, name, reader)];
  undo.defer(() => engine.volumeClaims.release(reader));
  undo.defer(async () => await releaseVolumes(engine, { id: reader, mounts }));
  const [mounted] = await mountVolumes(engine, { id: reader, mounts });
  const view = undo.use(await engine.copies.open({ root: mounted!.source, mounts: [], readOnly: 'everything' }));
  const parts = undo.move();
  return {
    view,
    removed: new AbortController().signal, // the claim keeps it
    [Symbol.asyncDispose]: async () => await parts.disposeAsync(),
  };
}

async function claim(engine: VolumeFilesNeeds, name: string, reader: string): Promise<MountPoint> {
  using _lock = await holdVolume(engine, name);
  engine.volumes.find(name);
  engine.volumeClaims.add(name, reader);
  return {
    type: 'volume',
    name,
    source: '',
    destination: '/',
    mode: '',
    writable: false,
    propagation: '',
    copyUp: false,
    anonymous: false,
  };
}
