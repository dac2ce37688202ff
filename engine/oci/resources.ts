import { readdirSync, realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';

import { blkioWeights, isScheduledByBfq, prepareBfqWeights } from '../host/cgroups/blkio-weights.ts';
import { detectCgroups } from '../host/cgroups/cgroups.ts';
import { limitSupport } from '../host/cgroups/limit-support.ts';
import { deviceMajor, deviceMinor } from '../host/files/device-nodes.ts';
import { append } from '../lib/append.ts';
import { EngineError, hasCode } from '../lib/errors.ts';
import type { Limits, SpecDescription, ThrottledDevice } from './description.ts';

type OciDevice = {
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

/**
 * Limits in the form of the OCI runtime specification; 0 or a missing value is no limit. Controllers without a limit are left
 * out, as crun fails at an empty one that the machine lacks.
 */
export function ociResources(limits: Limits, rules: readonly DeviceRule[]): object {
  const controllers = {
    memory: memoryOf(limits),
    cpu: dropEmpty({
      shares: limits.cpuShares,
      ...cpuTime(limits),
      realtimePeriod: limits.realtimePeriodUs,
      realtimeRuntime: limits.realtimeRuntimeUs,
      cpus: limits.cpusetCpus,
      mems: limits.cpusetMems,
    }),
    pids: limits.pids > 0 ? { limit: limits.pids } : {},
    blockIO: dropEmpty({
      ...(!isOursToWeigh(limits) && weightsOf(limits)),
      throttleReadBpsDevice: throttles(limits.readBps),
      throttleWriteBpsDevice: throttles(limits.writeBps),
      throttleReadIOPSDevice: throttles(limits.readIops),
      throttleWriteIOPSDevice: throttles(limits.writeIops),
    }),
  };
  const limited = Object.entries(controllers).filter(([, values]) => Object.keys(values).length > 0);
  return { devices: rules, ...Object.fromEntries(limited) };
}

/** Sets weights that no runtime sets; the runtime uses the existing cgroup `path`. */
export function prepareResources(limits: Limits, path: string): void {
  if (!isOursToWeigh(limits)) return;
  const { weight, weightDevice } = weightsOf(limits);
  prepareBfqWeights(detectCgroups(), path, weight, weightDevice);
}

/** The numbers of a device; undefined when there is none. */
export function blockDevice(path: string): { major: number; minor: number } | undefined {
  const real = realPath(path);
  return real === undefined ? undefined : deviceAt(real, path);
}

type Weights = { weight: number; weightDevice: { major: number; minor: number; weight: number }[] };

/**
 * Version 2 has weights of devices by BFQ alone. Where something else schedules a device its weight is left out, as runc
 * does, because crun 1.8 does not start the container then.
 */
function weightsOf({ blkioWeight, blkioWeightDevices }: Limits): Weights {
  const all = blkioWeightDevices.map(({ path, weight }) => ({ ...numbersOf(path), weight }));
  const isVersion2 = detectCgroups().version === 2;
  const weightDevice = all.filter(({ major, minor }) => !isVersion2 || isScheduledByBfq(major, minor));
  return { weight: blkioWeight, weightDevice };
}

function isOursToWeigh({ blkioWeight, blkioWeightDevices }: Limits): boolean {
  return (blkioWeight > 0 || blkioWeightDevices.length > 0) && blkioWeights(detectCgroups()) === 'bfq';
}

/** A container's devices besides the usual ones, and the rules of its cgroup. */
export function ociDevices({ privileged, devices: wanted, deviceRules }: SpecDescription): {
  devices: OciDevice[];
  rules: DeviceRule[];
} {
  const rules: DeviceRule[] = [
    { allow: false, access: 'rwm' },
    // Making a node is no access to the device behind it.
    { allow: true, type: 'c', access: 'm' },
    { allow: true, type: 'b', access: 'm' },
    ...ALWAYS.map(([major, minor]) => ({ allow: true, type: 'c', major, minor, access: 'rwm' })),
    { allow: true, type: 'c', major: 136, access: 'rwm' }, // terminals
  ];
  const devices = privileged ? devicesBelow('/dev', '/dev') : [];
  for (const { path, inContainer, access, ...own } of wanted) {
    if (privileged && inContainer === path) continue; // it is among the usual ones
    const found = mappedDevices(path, inContainer).map((device) => ({ ...device, ...definedOnly(own) }));
    append(devices, found);
    append(
      rules,
      found.map(({ type, major, minor }) => ({
        allow: true,
        type,
        major,
        minor,
        access,
      })),
    );
  }
  return { devices, rules: [...rules, ...deviceRules.map(deviceRule)] };
}

function definedOnly<T extends object>(values: T): T {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as T;
}

/** A device, or all devices of a folder such as `/dev/snd`. */
function mappedDevices(path: string, inContainer: string): OciDevice[] {
  const complaint = `error gathering device information while adding custom device "${path}"`;
  const real = realPath(path);
  if (real === undefined) throw new EngineError('failed', `${complaint}: no such file or directory`);
  const device = deviceAt(real, inContainer);
  const isFolder = device === undefined && statSync(real).isDirectory();
  if (!isFolder && path.endsWith('/')) throw new EngineError('failed', `${complaint}: not a directory`);
  const found = isFolder ? devicesBelow(real, inContainer) : [device];
  const devices = found.filter((one) => one !== undefined);
  if (devices.length === 0) throw new EngineError('failed', `${complaint}: not a device node`);
  return devices;
}

/** Reads `c 10:200 rwm`, with `*` for any number. Throws `invalid`. */
export function deviceRule(text: string): DeviceRule {
  const match = /^([acb]) (\d+|\*):(\d+|\*) ([rwm]{1,3})$/.exec(text);
  if (match === null) throw new EngineError('invalid', `invalid device cgroup rule format: '${text}'`);
  const [, type = '', major = '', minor = '', access = ''] = match;
  return {
    allow: true,
    type,
    ...(major !== '*' && { major: Number(major) }),
    ...(minor !== '*' && { minor: Number(minor) }),
    access,
  };
}

const PERIOD_US = 100_000;

/** A negative quota is none. */
export function cpuTime({ nanoCpus, cpuQuotaUs, cpuPeriodUs }: Limits): { quota: number; period: number } {
  if (nanoCpus > 0) return { quota: Math.floor((nanoCpus * PERIOD_US) / 1e9), period: PERIOD_US };
  return { quota: Math.max(cpuQuotaUs, 0), period: cpuPeriodUs };
}

let canLimitSwap: boolean | undefined;

function memoryOf(limits: Limits): object {
  canLimitSwap ??= limitSupport(detectCgroups()).swap;
  return {
    ...dropEmpty({
      limit: limits.memoryBytes,
      reservation: limits.memoryReservationBytes,
      swap: canLimitSwap ? limits.memorySwapBytes : 0,
      kernel: limits.kernelMemoryBytes,
      kernelTCP: limits.kernelTcpBytes,
      disableOOMKiller: limits.oomKillDisable,
    }),
    ...(limits.swappiness !== -1 && { swappiness: limits.swappiness }),
  };
}

function throttles(devices: readonly ThrottledDevice[]): object[] {
  return devices.map(({ path, rate }) => ({ ...numbersOf(path), rate }));
}

function numbersOf(path: string): { major: number; minor: number } {
  const real = realPath(path);
  if (real === undefined) throw new EngineError('failed', `stat ${path}: no such file or directory`);
  const device = deviceAt(real, path);
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

function realPath(path: string): string | undefined {
  if (path === '') return undefined; // or else it would be the folder in which the daemon was started
  try {
    return realpathSync(path);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Every device of a folder of the host, except for folders that a container has of its own. */
function devicesBelow(folder: string, inContainer: string): OciDevice[] {
  const found: OciDevice[] = [];
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    const place = join(inContainer, entry.name);
    if (entry.isDirectory()) {
      if (!['pts', 'shm', 'mqueue', '.lxc'].includes(entry.name)) append(found, devicesBelow(path, place));
    } else if (entry.isCharacterDevice() || entry.isBlockDevice()) {
      const device = path === '/dev/console' ? undefined : deviceAt(path, place);
      if (device !== undefined) found.push(device);
    }
  }
  return found;
}

function dropEmpty(values: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).filter(
      ([, value]) => value !== 0 && value !== '' && value !== false && !(Array.isArray(value) && value.length === 0),
    ),
  );
}
