import { closeSync, existsSync } from 'node:fs';

import type { OpenView } from '../../copies/copies.ts';
import type { ViewMount, ViewRequest } from '../../copies/messages.ts';
import type { Engine } from '../../engine.ts';
import { settlesWithin } from '../../lib/clock.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { newId } from '../../lib/ids.ts';
import { networkOwner } from '../links/network-owner.ts';
import { refuseUnclear } from '../runs/find-alive.ts';
import { etcFilesOf } from '../runs/preparation/etc-files.ts';
import { holdSource } from '../runs/preparation/mount-places.ts';
import { mountVolumes, releaseVolumes, type VolumeMountNeeds } from '../runs/preparation/volume-mounts.ts';
import { isAlive } from '../state.ts';
import type { Container, MountPoint } from '../store.ts';

export type FilesNeeds = VolumeMountNeeds &
  Pick<Engine, 'idMap' | 'clock' | 'config' | 'containers' | 'copies' | 'layers' | 'locks' | 'runs'>;

type How = Readonly<{
  readOnly: ViewRequest['readOnly'];
  /** Whether volumes, binds and the files of /etc are visible as in the container; otherwise only its own root. */
  withMounts: boolean;
}>;

/** Files in the view of a thread, until their owner is removed. */
export type ViewOfFiles = Readonly<{ view: OpenView; removed: AbortSignal }>;

/** A container's files, until it is disposed or the container is removed. */
export type OpenFiles = AsyncDisposable &
  ViewOfFiles &
  Readonly<{
    container: Container;
    /** The daemon's mount of its root, without the container's mounts. */
    root: string;
  }>;

/** As long as a start waits for the clean-up of the last run. */
const CLEANUP_TIMEOUT_SECONDS = 30;
const END_TIMEOUT_SECONDS = 10;

/** Throws `notFound`, and `failed` for a container whose files are missing. */
export async function openFiles(engine: FilesNeeds, ref: string, how: How): Promise<OpenFiles> {
  const { id } = engine.containers.find(ref);
  try {
    return await openOnce(engine, ref, id, how);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
    // Its shim has just ended; the end may not be recorded yet.
    if (isAliveNow(engine, id)) await settlesWithin(engine.runs.of(id).settled(), END_TIMEOUT_SECONDS, engine.clock);
    return await openOnce(engine, ref, id, how);
  }
}

async function openOnce(
  engine: FilesNeeds,
  ref: string,
  id: string,
  { readOnly, withMounts }: How,
): Promise<OpenFiles> {
  await using undo = new AsyncDisposableStack();
  // No start and no removal begins between the check of the state and the mount.
  using _lock = await engine.locks.hold(id);
  const container = engine.containers.find(engine.containers.get(id) === undefined ? ref : id);
  refuseUnclear(engine, container);
  if (container.state.status === 'removing') throw new EngineError('failed', `container ${id} is being removed`);
  const run = engine.runs.of(id);
  const removed = new AbortController();
  undo.use(run.addCopy(() => removed.abort(new EngineError('conflict', `container ${id} was removed meanwhile`))));
  const shim = isAlive(container.state) ? run.shim : undefined;
  const isClean = shim !== undefined || (await settlesWithin(run.cleaned(), CLEANUP_TIMEOUT_SECONDS, engine.clock));
  if (!isClean) throw new EngineError('failed', `the last run of container ${id} could not be cleaned up yet`);
  const { target } = engine.layers.overlay(id);
  const borrow = shim === undefined ? undefined : async () => await engine.copies.borrow(shim.pid, target);
  const root = undo.use(await engine.layers.mountOnHost(id, borrow, borrow && container.idMap));
  const shown = withMounts ? await mountsOfUser(engine, container, undo) : [];
  const mounts = withMounts ? mountsOf(engine, { ...container, mounts: heldParts(shown, undo) }) : [];
  const bounds = container.hostConfig.UsernsMode === 'host' ? undefined : engine.idMap;
  const view = undo.use(await engine.copies.open({ root: root.path, mounts, readOnly, idMap: root.idMap, bounds }));
  const parts = undo.move();
  return {
    container,
    view,
    root: root.path,
    removed: removed.signal,
    [Symbol.asyncDispose]: async () => await parts.disposeAsync(),
  };
}

/** A copy is a user of the volumes like a run: they stay mounted until both are over. */
async function mountsOfUser(
  engine: FilesNeeds,
  { id, mounts }: Container,
  undo: AsyncDisposableStack,
): Promise<MountPoint[]> {
  const user = { id: `${id}-${newId()}`, mounts };
  undo.defer(async () => await releaseVolumes(engine, user));
  return await mountVolumes(engine, user);
}

/** Parts of volumes by descriptors: a link of the volume cannot lead a copy out of it. */
function heldParts(mounts: readonly MountPoint[], undo: AsyncDisposableStack): MountPoint[] {
  return mounts.map((mount) => {
    if (mount.subpath === undefined || mount.type === 'image') return mount;
    return { ...mount, source: `/proc/self/fd/${undo.adopt(holdSource(mount), closeSync)}` };
  });
}

function isAliveNow({ containers }: FilesNeeds, id: string): boolean {
  const state = containers.get(id)?.state;
  return state !== undefined && isAlive(state);
}

/**
 * The mounts that dockerd shows: volumes and binds, and the container's own files in /etc, but no memory file systems and
 * images.
 */
function mountsOf(engine: FilesNeeds, container: Container): ViewMount[] {
  const own = container.mounts
    .filter(({ type }) => type !== 'tmpfs' && type !== 'image')
    .map(({ source, destination, writable, recursive }) => {
      return { source, destination, writable, recursive: recursive !== false };
    });
  const taken = new Set(own.map(({ destination }) => destination));
  return [...etcMounts(engine, container).filter(({ destination }) => !taken.has(destination)), ...own];
}

function etcMounts({ config, containers }: FilesNeeds, container: Container): ViewMount[] {
  const owner = networkOwner(container, (ref) => containers.find(ref));
  const { hostname, hosts, resolvConf } = etcFilesOf(config, owner.id);
  const places = { '/etc/hostname': hostname, '/etc/hosts': hosts, '/etc/resolv.conf': resolvConf };
  return Object.entries(places)
    .filter(([, source]) => existsSync(source))
    .map(([destination, source]) => ({
      source,
      destination,
      recursive: false,
      writable: !container.hostConfig.ReadonlyRootfs,
    }));
}
