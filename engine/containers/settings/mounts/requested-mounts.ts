import { release } from 'node:os';

import { EngineError } from '../../../lib/errors.ts';
import { claimVolume } from '../../../volumes/claims.ts';
import { createVolume, type CreateVolumeNeeds } from '../../../volumes/create.ts';
import type { VolumeDrivers } from '../../../volumes/drivers.ts';
import type { ContainerStore, MountPoint } from '../../store.ts';
import type { HostConfig, MountSpec } from '../host-config/host-config-schema.ts';
import { findOtherContainer } from '../other-containers.ts';
import { checkedDestination, parseBind, parseModes, parseMount, volumeMount } from './mount-points.ts';

/** A mount, and the options of its volume if that has to be created. */
type RequestedMount = Readonly<{ mount: MountPoint; volume: NonNullable<MountSpec['VolumeOptions']> }>;

/** Defaults of clients of older versions. */
export type MountDefaults = Readonly<{ readOnlyIsFlat?: boolean }>;

/** Each takes milliseconds of the daemon's time, and the kernel has a limit of 100,000 for all of a namespace. */
const MAX_MOUNTS = 1000;

/** A warning of the creation. */
export const DRIVER_IS_IGNORED =
  "WARNING: the container-wide volume-driver configuration is ignored for volumes specified via 'mount'. " +
  "Use '--mount type=volume,volume-driver=...' instead";

/** All mounts of a body, checked but for their drivers. Throws `invalid`. */
export function requestedMounts(
  containers: ContainerStore,
  hostConfig: HostConfig,
  volumePaths: readonly string[],
  { dataRoot, readOnlyIsFlat = false }: MountDefaults & { dataRoot: string },
): RequestedMount[] {
  const { Binds, Mounts, Tmpfs } = hostConfig;
  const count = (Binds ?? []).length + (Mounts ?? []).length + Object.keys(Tmpfs ?? {}).length + volumePaths.length;
  if (count > MAX_MOUNTS) throw new EngineError('invalid', `a container has at most ${MAX_MOUNTS} mounts and volumes`);
  const driver = { DriverConfig: { Name: hostConfig.VolumeDriver } };
  const byPath = new Map<string, RequestedMount>();
  for (const source of hostConfig.VolumesFrom ?? []) {
    for (const mount of borrowedMounts(containers, source)) byPath.set(mount.destination, { mount, volume: {} });
  }
  const own = [
    ...(Binds ?? []).map((bind) => ({ mount: parseBind(bind, dataRoot), volume: driver })),
    ...(Mounts ?? []).map((spec) => ({
      mount: parseMount(spec, dataRoot),
      volume: spec.VolumeOptions ?? {},
    })),
  ];
  const scratch = Object.keys(Tmpfs ?? {}).map(pathOf);
  refuseDuplicates([...scratch, ...own.map(({ mount }) => mount.destination)]);
  for (const requested of own) byPath.set(requested.mount.destination, requested);
  for (const path of volumePaths.map(pathOf)) {
    if (!byPath.has(path) && !scratch.includes(path))
      byPath.set(path, { mount: volumeMount('', path, '', true), volume: driver });
  }
  const readOnlyBelow = !readOnlyIsFlat && kernelHas(RECURSIVE_ATTRIBUTES);
  return [...byPath.values()].map(({ mount, volume }) => ({ mount: { readOnlyBelow, ...mount }, volume }));
}

/** The release of the kernel that makes whole trees of mounts read-only. */
const RECURSIVE_ATTRIBUTES = [5, 12] as const;

function kernelHas([major, minor]: readonly [number, number]): boolean {
  const [ownMajor = 0, ownMinor = 0] = release().split('.').map(Number.parseFloat);
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
}

/** The warnings for a creation's volumes. */
export function volumeWarnings({ VolumeDriver, Mounts }: HostConfig): string[] {
  const isIgnored = VolumeDriver !== '' && (Mounts ?? []).some(({ Type }) => Type === 'volume');
  return isIgnored ? [DRIVER_IS_IGNORED] : [];
}

/** Waits for the plugins of new volumes. Throws `invalid`, not `notFound`: clients take a 404 for a missing image. */
export async function checkVolumeDrivers(drivers: VolumeDrivers, requested: readonly RequestedMount[]): Promise<void> {
  const volumes = requested.filter(({ mount }) => mount.type === 'volume');
  const names = new Set(volumes.map(({ volume }) => volume.DriverConfig?.Name ?? ''));
  try {
    for (const name of names) await drivers.available(name);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError('invalid', error.message, { cause: error });
  }
}

/**
 * The mount with the place of its files; a missing volume is created. It is claimed for the container until that has a
 * record, or until `VolumeClaims.release`.
 */
export async function withSource(
  engine: CreateVolumeNeeds,
  containerId: string,
  { mount, volume }: RequestedMount,
): Promise<MountPoint> {
  if (mount.type !== 'volume') return mount;
  if (mount.source !== '') {
    await claimVolume(engine, mount.name ?? '', containerId); // another container's
    return mount;
  }
  const made = await createVolume(engine, {
    claimedBy: containerId,
    name: mount.name,
    driver: volume.DriverConfig?.Name,
    anonymous: mount.anonymous,
    labels: volume.Labels,
    options: volume.DriverConfig?.Options,
  });
  const facts = await engine.volumeDrivers.find(made.driver).look(made);
  return { ...mount, name: made.name, driver: made.driver, source: facts?.path ?? '' };
}

function pathOf(path: string): string {
  return checkedDestination(path, (what) => `invalid volume specification: '${path}': ${what}`);
}

function refuseDuplicates(paths: readonly string[]): void {
  const seen = new Set<string>();
  for (const path of paths) {
    if (seen.has(path)) throw new EngineError('invalid', `Duplicate mount point: ${path}`);
    seen.add(path);
  }
}

/** `container[:modes]`: the mounts of another container. */
function borrowedMounts(containers: ContainerStore, source: string): MountPoint[] {
  const [ref = '', ...more] = source.split(':');
  const modes = parseModes(more.join(':'));
  return findOtherContainer(containers, ref).mounts.map((mount) => ({
    ...mount,
    mode: '',
    copyUp: false, // an anonymous volume stays one: the last of its containers removes it
    writable: mount.writable && !modes.includes('ro'),
  }));
}
