import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { deviceMajor, deviceMinor } from '../host/nodes.ts';
import { EngineError, hasCode } from '../lib/errors.ts';
import type { HostConfig, ThrottleDevice } from './host-config-schema.ts';

export type OciDevice = {
  path: string;
  type: 'c' | 'b';
  major: number;
  minor: number;
  fileMode: number;
  uid: number;
  gid: number;
};
type DeviceRule = { allow: boolean; type?: string; major?: number; minor?: number; access: string };

/** Character devices that every container has; the runtime makes their nodes. */
const ALWAYS: readonly (readonly [number, number])[] = [
  [1, 3], // null
  [1, 5], // zero
  [1, 7], // full
  [1, 8], // random
  [1, 9], // urandom
  [5, 0], // tty
  [5, 1], // console
  [5, 2], // ptmx
];

/** Limits in the form of the OCI runtime specification; what is 0 or missing is no limit. */
export function ociResources(hostConfig: HostConfig, rules: readonly DeviceRule[]): object {
  return {
    devices: hostConfig.Privileged ? [{ allow: true, access: 'rwm' }] : rules,
    memory: memoryOf(hostConfig),
    cpu: dropEmpty({
      shares: hostConfig.CpuShares,
      quota: hostConfig.CpuQuota,
      period: hostConfig.CpuPeriod,
      cpus: hostConfig.CpusetCpus,
      mems: hostConfig.CpusetMems,
    }),
    ...((hostConfig.PidsLimit ?? 0) !== 0 && { pids: { limit: Math.max(hostConfig.PidsLimit ?? 0, -1) } }),
    blockIO: dropEmpty({
      weight: hostConfig.BlkioWeight,
      weightDevice: hostConfig.BlkioWeightDevice?.map(({ Path, Weight }) => ({ ...numbersOf(Path), weight: Weight })),
      throttleReadBpsDevice: throttles(hostConfig.BlkioDeviceReadBps),
      throttleWriteBpsDevice: throttles(hostConfig.BlkioDeviceWriteBps),
      throttleReadIOPSDevice: throttles(hostConfig.BlkioDeviceReadIOps),
      throttleWriteIOPSDevice: throttles(hostConfig.BlkioDeviceWriteIOps),
    }),
  };
}

/** The devices a container is given besides the usual ones, and what its cgroup allows. */
export function ociDevices(hostConfig: HostConfig): { devices: OciDevice[]; rules: DeviceRule[] } {
  const rules: DeviceRule[] = [
    { allow: false, access: 'rwm' },
    // Making a node is no access to the device behind it.
    { allow: true, type: 'c', access: 'm' },
    { allow: true, type: 'b', access: 'm' },
    ...ALWAYS.map(([major, minor]) => ({ allow: true, type: 'c', major, minor, access: 'rwm' })),
    { allow: true, type: 'c', major: 136, access: 'rwm' }, // terminals
  ];
  if (hostConfig.Privileged) return { devices: allDevices('/dev'), rules };
  const devices: OciDevice[] = [];
  for (const { PathOnHost, PathInContainer, CgroupPermissions } of hostConfig.Devices ?? []) {
    const found = deviceAt(PathOnHost, PathInContainer || PathOnHost);
    if (found === undefined) {
      throw new EngineError(
        'failed',
        `error gathering device information while adding custom device "${PathOnHost}": not a device node`,
      );
    }
    devices.push(found);
    rules.push({
      allow: true,
      type: found.type,
      major: found.major,
      minor: found.minor,
      access: CgroupPermissions || 'rwm',
    });
  }
  return { devices, rules };
}

function memoryOf(hostConfig: HostConfig): object {
  const { Memory, MemorySwap, MemoryReservation, KernelMemory, MemorySwappiness, OomKillDisable } = hostConfig;
  const canLimitSwap =
    existsSync('/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes') || existsSync('/sys/fs/cgroup/cgroup.controllers');
  return dropEmpty({
    limit: Memory,
    reservation: MemoryReservation,
    swap: canLimitSwap ? MemorySwap : 0,
    kernel: KernelMemory,
    ...(MemorySwappiness !== null && MemorySwappiness !== -1 && { swappiness: MemorySwappiness }),
    disableOOMKiller: OomKillDisable ?? false,
  });
}

function throttles(devices: readonly ThrottleDevice[] | null): object[] | undefined {
  return devices?.map(({ Path, Rate }) => ({ ...numbersOf(Path), rate: Number(Rate) }));
}

function numbersOf(path: string): { major: number; minor: number } {
  const device = deviceAt(path, path);
  if (device === undefined) throw new EngineError('failed', `${path}: not a device node`);
  return { major: device.major, minor: device.minor };
}

function deviceAt(path: string, inContainer: string): OciDevice | undefined {
  try {
    const found = statSync(path, { bigint: true });
    if (!found.isCharacterDevice() && !found.isBlockDevice()) return undefined;
    return {
      path: inContainer,
      type: found.isBlockDevice() ? 'b' : 'c',
      major: deviceMajor(found.rdev),
      minor: deviceMinor(found.rdev),
      fileMode: Number(found.mode) & 0o777,
      uid: Number(found.uid),
      gid: Number(found.gid),
    };
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Every device of the host, without the folders that a container has of its own. */
function allDevices(folder: string): OciDevice[] {
  const found: OciDevice[] = [];
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (!['pts', 'shm', 'mqueue', '.lxc'].includes(entry.name)) found.push(...allDevices(path));
    } else if (entry.isCharacterDevice() || entry.isBlockDevice()) {
      const device = path === '/dev/console' ? undefined : deviceAt(path, path);
      if (device !== undefined) found.push(device);
    }
  }
  return found;
}

function dropEmpty(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).filter(
      ([, value]) => value !== 0 && value !== '' && value !== undefined && value !== null && value !== false,
    ),
  );
}
