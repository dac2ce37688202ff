import { hostname as hostName } from 'node:os';
import { join } from 'node:path';

import type { Config } from '../config/config.ts';
import type { Events } from '../events/events.ts';
import type { Image, ImageStore } from '../images/store.ts';
import type { Layers } from '../layers/layers.ts';
import type { Clock } from '../lib/clock.ts';
import { EngineError } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import type { Runtimes } from '../runtime/runtimes.ts';
import { createVolume } from '../volumes/create.ts';
import type { VolumeUsage } from '../volumes/remove.ts';
import type { VolumeStore } from '../volumes/store.ts';
import { checkAgainstModes, commandOf, completeConfig } from './container-config.ts';
import { emitContainer } from './container-events.ts';
import { checkUser } from './container-user.ts';
import type { HostConfig } from './host-config-schema.ts';
import { completeHostConfig } from './host-config.ts';
import { storedLinks } from './links.ts';
import { checkAttributes } from './log-attributes.ts';
import { parseBind, volumeMount } from './mount-points.ts';
import { containerFolder } from './places.ts';
import { randomName } from './random-name.ts';
import { removeAnonymousVolumes } from './remove.ts';
import type { CreateBody } from './schema.ts';
import { nameTaken, type Container, type ContainerStore, type MountPoint } from './store.ts';
import { limitSupport, withoutUnsupported } from './supported-limits.ts';
import { copyUpVolumes } from './volume-copy-up.ts';

type Needs = {
  config: Config;
  clock: Clock;
  containers: ContainerStore;
  events: Events;
  images: ImageStore;
  layers: Layers;
  runtimes: Runtimes;
  volumes: VolumeStore;
  volumeUsage: VolumeUsage;
};

const OTHER = 'container:';
const NAME = /^\/?[a-zA-Z0-9_-]+$/;

/**
 * Makes a container that is ready to start; everything that can be refused is refused before anything is made.
 *
 * Throws `invalid`, `notFound` (the image), `conflict` (the name). Specification, endpoint 2.
 */
export async function createContainer(
  engine: Needs,
  body: CreateBody,
  name?: string,
): Promise<{ container: Container; warnings: string[] }> {
  const id = newId();
  const image = findImage(engine.images, body.Image ?? '');
  const asked = completeHostConfig(body.HostConfig ?? {}, {
    logDriver: engine.config.logDriver,
    logOpts: engine.config.logOpts,
    runtime: engine.runtimes.defaultName,
  });
  checkAgainstModes(body, asked.NetworkMode, asked.UTSMode);
  engine.runtimes.get(asked.Runtime);
  const { hostConfig, warnings } = withoutUnsupported(withOthersById(engine.containers, asked), limitSupport());
  const hostname = hostConfig.NetworkMode === 'host' ? hostName() : '';
  const config = completeConfig(id, body, image.config, hostname);
  const { path, args } = commandOf(config);
  checkUser({ user: config.User, groupAdd: hostConfig.GroupAdd ?? [] });
  const mounts = mountsOf(engine.containers, hostConfig, Object.keys(config.Volumes ?? {}));

  const driver = hostConfig.VolumeDriver;
  if (driver !== '' && driver !== 'local' && mounts.some(({ type }) => type === 'volume')) {
    throw new EngineError('invalid', `error looking up volume plugin ${driver}: plugin "${driver}" not found`);
  }

  await using undo = new AsyncDisposableStack();
  const withSources = mounts.map((mount) => withSource(engine, mount));
  undo.defer(async () => await removeAnonymousVolumes(engine, withSources));
  const container: Container = {
    id,
    name: nameOf(engine.containers, name),
    createdAt: engine.clock.now(),
    imageId: image.id,
    imageName: body.Image ?? '',
    config,
    hostConfig,
    networkingConfig: body.NetworkingConfig ?? {},
    path,
    args,
    state: { status: 'created', exitCode: 0 },
    error: '',
    oomKilled: false,
    restartCount: 0,
    stoppedByUser: false,
    mounts: withSources,
    logPath:
      hostConfig.LogConfig.Type === 'json-file' ? join(containerFolder(engine.config, id), `${id}-json.log`) : '',
  };
  checkAttributes(container);
  await engine.layers.prepare(id, image.id);
  undo.defer(async () => await engine.layers.remove(id));
  await copyUpVolumes(engine, container);
  // Another create may have taken the name while this one waited.
  engine.containers.insert(container);
  undo.move();
  emitContainer(engine.events, 'create', container);
  return { container, warnings };
}

function findImage(images: ImageStore, ref: string): Image {
  if (ref === '') throw new EngineError('invalid', 'No image was specified');
  return images.find(ref);
}

function nameOf(containers: ContainerStore, wanted: string | undefined): string {
  if (wanted === undefined || wanted === '') return randomName((name) => containers.named(name) !== undefined);
  if (!NAME.test(wanted)) {
    throw new EngineError('invalid', `Invalid container name (${wanted}), only [a-zA-Z0-9_-] are allowed`);
  }
  const name = wanted.replace(/^\//, '');
  const holder = containers.named(name);
  if (holder !== undefined) throw nameTaken(name, holder.id);
  return name;
}

/** The containers that this one names are kept by their ids: a name may change. */
function withOthersById(containers: ContainerStore, hostConfig: HostConfig): HostConfig {
  const { NetworkMode, PidMode, IpcMode, Links } = hostConfig;
  return {
    ...hostConfig,
    Links: Links === null || Links.length === 0 ? Links : storedLinks(Links, (ref) => findOther(containers, ref)),
    NetworkMode: networkById(containers, NetworkMode),
    PidMode: modeById(containers, PidMode),
    IpcMode: modeById(containers, IpcMode),
  };
}

function modeById(containers: ContainerStore, mode: string): string {
  if (!mode.startsWith(OTHER)) return mode;
  return OTHER + findOther(containers, mode.slice(OTHER.length)).id;
}

/** A network is only looked for at the start, as in docker, and so is a container whose network is shared. */
function networkById(containers: ContainerStore, mode: string): string {
  try {
    return modeById(containers, mode);
  } catch (error) {
    if (error instanceof EngineError) return mode;
    throw error;
  }
}

/** It is not the container of the request: a 404 would tell a client that the image is missing. */
function findOther(containers: ContainerStore, ref: string): Container {
  try {
    return containers.find(ref);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError('invalid', error.message, { cause: error });
  }
}

function mountsOf(containers: ContainerStore, hostConfig: HostConfig, volumePaths: readonly string[]): MountPoint[] {
  const byPath = new Map<string, MountPoint>();
  for (const source of hostConfig.VolumesFrom ?? []) {
    for (const mount of borrowedMounts(containers, source)) byPath.set(mount.destination, mount);
  }
  const binds = (hostConfig.Binds ?? []).map(parseBind);
  const twice = binds.find(
    ({ destination }, index) => binds.findIndex((other) => other.destination === destination) !== index,
  );
  if (twice !== undefined) throw new EngineError('invalid', `Duplicate mount point: ${twice.destination}`);
  for (const bind of binds) byPath.set(bind.destination, bind);
  for (const path of volumePaths) {
    if (!byPath.has(path)) byPath.set(path, volumeMount('', path, '', true));
  }
  return [...byPath.values()];
}

/** `container[:ro|:rw]`: the mounts of another container. */
function borrowedMounts(containers: ContainerStore, source: string): MountPoint[] {
  const [ref = '', mode = ''] = source.split(':');
  if (!['', 'ro', 'rw', 'z', 'Z'].includes(mode))
    throw new EngineError('invalid', `invalid mode for volumes-from: ${mode}`);
  return findOther(containers, ref).mounts.map((mount) => ({
    ...mount,
    anonymous: false, // the other container owns it
    copyUp: false,
    writable: mount.writable && mode !== 'ro',
  }));
}

/** A volume gets its folder, and is made when it is not there. */
function withSource(engine: Needs, mount: MountPoint): MountPoint {
  if (mount.type !== 'volume' || mount.source !== '') return mount;
  const { name } = createVolume(engine, { name: mount.name, anonymous: mount.anonymous });
  return { ...mount, name, source: engine.volumes.mountpoint(name) };
}
