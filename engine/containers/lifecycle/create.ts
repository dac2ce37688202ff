import { hostname as hostName } from 'node:os';

import type { Engine } from '../../engine.ts';
import { detectCgroups } from '../../host/cgroups/cgroups.ts';
import { limitSupport } from '../../host/cgroups/limit-support.ts';
import type { Platform } from '../../images/configuration/platform.ts';
import type { Image, ImageStore } from '../../images/store.ts';
import { append } from '../../lib/append.ts';
import { EngineError } from '../../lib/errors.ts';
import { newId } from '../../lib/ids.ts';
import { measure } from '../../lib/measures.ts';
import { randomName } from '../../lib/random-name.ts';
import { logDriver } from '../../logs/drivers.ts';
import { checkAttributes } from '../../logs/log-attributes.ts';
import type { Networks } from '../../networks/networks.ts';
import { checkUser } from '../../oci/user.ts';
import type { CreateVolumeNeeds } from '../../volumes/create.ts';
import type { RemoveVolumeNeeds } from '../../volumes/remove.ts';
import { emitContainer } from '../container-events.ts';
import { requestedAttachments } from '../networks/attachments.ts';
import {
  checkInterfaceSysctls,
  macWarnings,
  withFilledBindings,
  type NetworkDefaults,
} from '../networks/requested-networks.ts';
import { containerFolder } from '../runs/places.ts';
import type { VolumeMountNeeds } from '../runs/preparation/volume-mounts.ts';
import type { CreateBody } from '../schema.ts';
import { checkAgainstModes, commandOf, completeConfig } from '../settings/container-config.ts';
import { containerName } from '../settings/container-name.ts';
import type { HostConfigBody } from '../settings/host-config/host-config-schema.ts';
import { completeHostConfig } from '../settings/host-config/host-config.ts';
import { hostConfigOf } from '../settings/host-config/old-fields.ts';
import { writableLimit } from '../settings/host-config/writable-limit.ts';
import { withoutUnsupported } from '../settings/limits/supported-limits.ts';
import {
  checkVolumeDrivers,
  requestedMounts,
  volumeWarnings,
  withSource,
  type MountDefaults,
} from '../settings/mounts/requested-mounts.ts';
import { copyUpVolumes } from '../settings/mounts/volume-copy-up.ts';
import { resolveOtherContainers } from '../settings/other-containers.ts';
import { makeWorkingDirectory } from '../settings/working-directory.ts';
import { nameTaken, type Container, type ContainerStore, type MountPoint } from '../store.ts';
import { removeAnonymousVolumes } from './remove.ts';

const NO_QUOTAS =
  "--storage-opt is supported only for overlay over xfs with 'pquota' mount option, or ext4 with 'prjquota'";

type Needs = CreateVolumeNeeds &
  RemoveVolumeNeeds &
  VolumeMountNeeds &
  Pick<Engine, 'config' | 'containers' | 'copies' | 'idMap' | 'images' | 'layers' | 'networks' | 'runtimes'>;

type Origin = Readonly<{
  ofBuild?: boolean;
  /** Each start takes files from `memoryFiles`. */
  needsFiles?: boolean;
  platform?: Platform | undefined;
}>;

/**
 * Creates a container that is ready to start. All checks come before the first change.
 *
 * Throws `invalid`, `notFound` (the image), `conflict` (the name). Specification, endpoint 2.
 */
export async function createContainer(
  engine: Needs,
  body: CreateBody & NetworkDefaults & MountDefaults,
  name?: string,
  { ofBuild = false, needsFiles = false, platform }: Origin = {},
): Promise<{ container: Container; warnings: string[] }> {
  const measured = measure('container', 'create');
  const { described: asked, requested, limitBytes, warnings } = checkCreation(engine, body, { name, platform });
  const { id } = asked;
  await checkVolumeDrivers(engine.volumeDrivers, requested);

  await using undo = new AsyncDisposableStack();
  const mounts: MountPoint[] = [];
  undo.defer(async () => await removeAnonymousVolumes(engine, mounts));
  undo.defer(() => engine.volumeClaims.release(id)); // before that removal
  for (const mount of requested) mounts.push(await withSource(engine, id, mount));
  const described: Container = { ...asked, ...(ofBuild && { ofBuild }), ...(needsFiles && { needsFiles }), mounts };
  await engine.layers.prepare(id, described.imageId, limitBytes);
  undo.defer(async () => await engine.layers.remove(id));
  await makeWorkingDirectory(engine, described); // before the volumes, which get it when it is in one of them
  await copyUpVolumes(engine, described);
  const container = insert(engine, described, name);
  undo.move();
  engine.volumeClaims.release(id);
  measured();
  return { container, warnings };
}

type Checked = {
  /** Without mounts: their volumes do not exist yet. */
  described: Container;
  requested: ReturnType<typeof requestedMounts>;
  /** Limit of the writable layer. */
  limitBytes: number | undefined;
  warnings: string[];
};

/** All checks of a request, before the first change. */
function checkCreation(
  engine: Needs,
  body: CreateBody & NetworkDefaults & MountDefaults,
  { name, platform }: { name: string | undefined; platform: Platform | undefined },
): Checked {
  const id = newId();
  const image = findImage(engine.images, body.Image ?? '', platform);
  const complete = completeHostConfig(withNetworkByName(engine.networks, hostConfigOf(body)), {
    logDriver: engine.config.logDriver,
    logOpts: engine.config.logOpts,
    runtime: engine.runtimes.defaultName,
    cgroupDriver: engine.config.cgroupDriver,
    mapsUsers: engine.idMap !== undefined,
  });
  const { hostConfig: asked, warnings: portWarnings } = withFilledBindings(body, complete);
  checkAgainstModes(body, asked.NetworkMode, asked.UTSMode);
  checkInterfaceSysctls(body, asked);
  engine.runtimes.get(asked.Runtime);
  const support = limitSupport(detectCgroups());
  const { hostConfig, warnings } = withoutUnsupported(resolveOtherContainers(engine.containers, asked), support);
  const requestedNetworks = requestedAttachments(engine.networks, body.NetworkingConfig ?? {}, {
    networkMode: asked.NetworkMode,
    isDisabled: body.NetworkDisabled === true,
  });
  append(warnings, portWarnings);
  append(warnings, requestedNetworks.warnings);
  append(warnings, macWarnings(body, asked.NetworkMode, requestedNetworks.attachments));
  const hostname = hostConfig.NetworkMode === 'host' ? hostName() : '';
  const config = completeConfig(id, body, image.config, hostname);
  const { path, args } = commandOf(config);
  const limitBytes = writableLimit(hostConfig.StorageOpt);
  if (limitBytes !== undefined) engine.layers.writable.limits.check(NO_QUOTAS);
  checkUser({ user: config.User, groupAdd: hostConfig.GroupAdd ?? [] });
  append(warnings, volumeWarnings(hostConfig));
  const requested = requestedMounts(engine.containers, hostConfig, Object.keys(config.Volumes ?? {}), {
    dataRoot: engine.config.dataRoot,
    readOnlyIsFlat: body.readOnlyIsFlat,
  }).map(({ mount, volume }) => ({ mount: withImage(engine.images, mount), volume }));
  const described: Container = {
    id,
    name: nameOf(engine.containers, name),
    createdAt: engine.clock.now(),
    imageId: image.id,
    imageName: body.Image ?? '',
    config,
    hostConfig,
    attachments: requestedNetworks.attachments,
    path,
    args,
    state: { status: 'created', exitCode: 0 },
    error: '',
    oomKilled: false,
    restartCount: 0,
    stoppedByUser: false,
    mounts: [],
    logPath: logDriver(hostConfig.LogConfig.Type).path?.(containerFolder(engine.config, id), id) ?? '',
  };
  checkAttributes(described);
  return { described, requested, limitBytes, warnings };
}

/** Throws `conflict` if another creation has taken the name meanwhile; a random name is drawn again. */
function insert({ containers, events, images }: Needs, described: Container, wanted: string | undefined): Container {
  return containers.together(() => {
    const container = isWanted(wanted) ? described : { ...described, name: nameOf(containers, wanted) };
    for (const { imageId } of container.mounts) if (imageId !== undefined) images.find(imageId); // or it was removed
    containers.insert(container);
    emitContainer(events, 'create', container);
    return container;
  });
}

function withImage(images: ImageStore, mount: MountPoint): MountPoint {
  return mount.type === 'image' ? { ...mount, imageId: images.find(mount.name ?? '').id } : mount;
}

function findImage(images: ImageStore, ref: string, platform: Platform | undefined): Image {
  if (ref === '') throw new EngineError('invalid', 'No image was specified');
  return images.find(ref, platform);
}

function nameOf(containers: ContainerStore, wanted: string | undefined): string {
  if (!isWanted(wanted)) return randomName((name) => containers.named(name) !== undefined);
  const name = containerName(wanted);
  const holder = containers.named(name);
  if (holder !== undefined) throw nameTaken(name, holder.id);
  return name;
}

function isWanted(name: string | undefined): name is string {
  return name !== undefined && name !== '';
}

/** Replaces a network's id by its name, because modes are compared by name. */
function withNetworkByName(networks: Networks, body: HostConfigBody): HostConfigBody {
  const { NetworkMode = '' } = body;
  const isId = NetworkMode !== '' && networks.list().some(({ id }) => id.startsWith(NetworkMode));
  return isId ? { ...body, NetworkMode: networks.find(NetworkMode).name } : body;
}
