import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { append } from '../../lib/append.ts';
import { hasCode } from '../../lib/errors.ts';
import type { Cgroups, Controller } from './cgroups.ts';

/** Limits to set; missing ones stay unchanged. For memory, quota and processes, 0 or less is no limit. */
export type LimitValues = Readonly<{
  cpuShares?: number;
  cpuTime?: Readonly<{ quotaUs: number; periodUs: number }>;
  /** Limits of version 1 alone. 0 stays as it is. */
  realtime?: Readonly<{ periodUs: number; runtimeUs: number }>;
  cpusetCpus?: string;
  cpusetMems?: string;
  /** `withSwapBytes` is the sum of both. */
  memory?: Readonly<{ bytes: number; withSwapBytes: number }>;
  reservationBytes?: number;
  pids?: number;
  /** 10 to 1000. */
  blkioWeight?: number;
  devices?: readonly DeviceLimit[];
}>;

/** A limit of one block device, `number` such as `8:0`; 0 is none. */
export type DeviceLimit = Readonly<{
  kind: 'weight' | 'readBps' | 'writeBps' | 'readIops' | 'writeIops';
  number: string;
  value: number;
}>;

/** One write into a file of a cgroup, with the text before it. */
export type LimitWrite = Readonly<{ path: string; before: string; after: string }>;

type Wanted = Readonly<{ controller: Controller; file: string; text: string }>;

const DEFAULT_PERIOD_US = 100_000;

/**
 * The writes that set these limits of the cgroup `path`, in an order that the kernel accepts; none for unchanged
 * limits.
 */
export async function planLimits(cgroups: Cgroups, path: string, values: LimitValues): Promise<LimitWrite[]> {
  const at = (controller: Controller, file: string): string | undefined => {
    const mount = cgroups.controllers.get(controller);
    return mount === undefined ? undefined : join(mount, path, file);
  };
  const wanted = cgroups.version === 1 ? version1(values) : version2(values);
  const writes = await planDevices(cgroups, values.devices ?? [], at);
  for (const { controller, file, text } of wanted) {
    const place = at(controller, file);
    const before = place === undefined ? undefined : await textOf(place);
    if (place !== undefined && before !== undefined) writes.push({ path: place, before, after: text });
  }
  return inOrder(writes).filter(({ before, after }) => before !== after);
}

/** Files of version 1 with a line for each device; a kernel has one of the weights, by its scheduler. */
const DEVICE_FILES_1: Readonly<Record<DeviceLimit['kind'], readonly string[]>> = {
  weight: ['blkio.bfq.weight_device', 'blkio.weight_device'],
  readBps: ['blkio.throttle.read_bps_device'],
  writeBps: ['blkio.throttle.write_bps_device'],
  readIops: ['blkio.throttle.read_iops_device'],
  writeIops: ['blkio.throttle.write_iops_device'],
};
/** Keys of `io.max` of version 2. */
const DEVICE_KEYS_2 = { readBps: 'rbps', writeBps: 'wbps', readIops: 'riops', writeIops: 'wiops' } as const;

/** The writes for single devices, each with the line that the device has now. */
async function planDevices(
  { version }: Cgroups,
  limits: readonly DeviceLimit[],
  at: (controller: Controller, file: string) => string | undefined,
): Promise<LimitWrite[]> {
  const writes: LimitWrite[] = [];
  for (const { kind, number, value } of limits) {
    const key = version === 1 || kind === 'weight' ? undefined : DEVICE_KEYS_2[kind];
    const files = version === 1 ? DEVICE_FILES_1[kind] : [key === undefined ? 'io.bfq.weight' : 'io.max'];
    const none = key !== undefined ? 'max' : kind === 'weight' && version === 2 ? 'default' : '0';
    const lineOf = (text: string): string => `${number} ${key === undefined ? '' : `${key}=`}${text}`;
    for (const path of files.map((file) => at('blkio', file))) {
      const lines = path === undefined ? undefined : await linesOf(path);
      if (path === undefined || lines === undefined) continue;
      const words = lines.find((line) => line.startsWith(`${number} `))?.split(' ') ?? [];
      const now =
        key === undefined ? words[1] : words.find((word) => word.startsWith(`${key}=`))?.slice(key.length + 1);
      writes.push({ path, before: lineOf(now ?? none), after: lineOf(value > 0 ? String(value) : none) });
    }
  }
  return writes;
}

/** Writes all or nothing: a failure undoes the earlier writes, and is thrown as `LimitRefused`. */
export async function applyLimits(writes: readonly LimitWrite[]): Promise<void> {
  const done: LimitWrite[] = [];
  for (const write of writes) {
    try {
      await put(write.path, write.after);
    } catch (error) {
      await revertLimits(done);
      throw new LimitRefused(write, error);
    }
    done.push(write);
  }
}

/** Undoes writes; a cgroup that is gone needs no undo. */
export async function revertLimits(writes: readonly LimitWrite[]): Promise<void> {
  for (const { path, before } of writes.toReversed()) {
    try {
      await put(path, before);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }
}

/** The kernel has refused a limit. */
export class LimitRefused extends Error {
  /** Whether the cgroup is gone. */
  readonly isGone: boolean;

  constructor({ path, after }: LimitWrite, cause: unknown) {
    super(`failed to write "${after}" to ${path}: ${reasonOf(cause)}`, { cause });
    this.name = 'LimitRefused';
    this.isGone = isGone(cause);
  }
}

/** The middle of `EINVAL: invalid argument, write`. */
function reasonOf(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause);
  return /^\w+: (.+), \w+/.exec(message)?.[1] ?? message;
}

function version1(values: LimitValues): Wanted[] {
  const { cpuShares, cpuTime, realtime, memory, reservationBytes, blkioWeight } = values;
  const wanted: Wanted[] = [...inBoth(values)];
  for (const [file, value] of [
    ['cpu.rt_period_us', realtime?.periodUs ?? 0],
    ['cpu.rt_runtime_us', realtime?.runtimeUs ?? 0],
  ] as const) {
    if (value !== 0) wanted.push({ controller: 'cpu', file, text: String(value) });
  }
  if (cpuShares !== undefined) wanted.push({ controller: 'cpu', file: 'cpu.shares', text: String(cpuShares) });
  if (cpuTime !== undefined) {
    wanted.push(
      { controller: 'cpu', file: 'cpu.cfs_period_us', text: String(cpuTime.periodUs || DEFAULT_PERIOD_US) },
      { controller: 'cpu', file: 'cpu.cfs_quota_us', text: orNone(cpuTime.quotaUs, '-1') },
    );
  }
  if (memory !== undefined) {
    wanted.push(
      { controller: 'memory', file: 'memory.limit_in_bytes', text: orNone(memory.bytes, '-1') },
      { controller: 'memory', file: 'memory.memsw.limit_in_bytes', text: orNone(memory.withSwapBytes, '-1') },
    );
  }
  if (reservationBytes !== undefined) {
    wanted.push({ controller: 'memory', file: 'memory.soft_limit_in_bytes', text: orNone(reservationBytes, '-1') });
  }
  if (blkioWeight !== undefined) {
    // A kernel has one of them, by its scheduler.
    for (const file of ['blkio.weight', 'blkio.bfq.weight']) {
      wanted.push({ controller: 'blkio', file, text: String(blkioWeight) });
    }
  }
  return wanted;
}

function version2(values: LimitValues): Wanted[] {
  const { cpuShares, cpuTime, memory, reservationBytes, blkioWeight } = values;
  const wanted: Wanted[] = [...inBoth(values)];
  if (cpuShares !== undefined) wanted.push({ controller: 'cpu', file: 'cpu.weight', text: cpuWeight(cpuShares) });
  if (cpuTime !== undefined) {
    const text = `${orNone(cpuTime.quotaUs, 'max')} ${cpuTime.periodUs || DEFAULT_PERIOD_US}`;
    wanted.push({ controller: 'cpu', file: 'cpu.max', text });
  }
  if (memory !== undefined) {
    const { bytes, withSwapBytes } = memory;
    const swap = bytes > 0 && withSwapBytes > 0 ? String(withSwapBytes - bytes) : 'max';
    wanted.push(
      { controller: 'memory', file: 'memory.swap.max', text: swap },
      { controller: 'memory', file: 'memory.max', text: orNone(bytes, 'max') },
    );
  }
  if (reservationBytes !== undefined) {
    wanted.push({ controller: 'memory', file: 'memory.low', text: orNone(reservationBytes, '0') });
  }
  if (blkioWeight !== undefined) {
    wanted.push(
      { controller: 'blkio', file: 'io.bfq.weight', text: `default ${blkioWeight}` },
      { controller: 'blkio', file: 'io.weight', text: `default ${ioWeight(blkioWeight)}` },
    );
  }
  return wanted;
}

/** The files that have the same name in both versions. */
function inBoth({ cpusetCpus, cpusetMems, pids }: LimitValues): Wanted[] {
  const wanted: Wanted[] = [];
  if (cpusetCpus !== undefined) wanted.push({ controller: 'cpuset', file: 'cpuset.cpus', text: cpusetCpus });
  if (cpusetMems !== undefined) wanted.push({ controller: 'cpuset', file: 'cpuset.mems', text: cpusetMems });
  if (pids !== undefined) wanted.push({ controller: 'pids', file: 'pids.max', text: orNone(pids, 'max') });
  return wanted;
}

/** Version 1 keeps memory below memory with swap, and a quota below that of the parent, at every moment. */
function inOrder(writes: readonly LimitWrite[]): LimitWrite[] {
  const named = (name: string): LimitWrite | undefined => writes.find(({ path }) => path.endsWith(`/${name}`));
  const [memory, both] = [named('memory.limit_in_bytes'), named('memory.memsw.limit_in_bytes')];
  const [period, quota] = [named('cpu.cfs_period_us'), named('cpu.cfs_quota_us')];
  const [rtPeriod, rtRuntime] = [named('cpu.rt_period_us'), named('cpu.rt_runtime_us')];
  const ordered = writes.filter((write) => ![memory, both, period, quota, rtPeriod, rtRuntime].includes(write));
  // Neither step asks for a larger share than one of the ends.
  const isLonger = Number(rtPeriod?.after) > Number(rtPeriod?.before);
  for (const write of isLonger ? [rtPeriod, rtRuntime] : [rtRuntime, rtPeriod]) {
    if (write !== undefined) ordered.push(write);
  }
  if (memory !== undefined) {
    const grows = both !== undefined && bytesOf(memory.after) > bytesOf(both.before);
    append(ordered, grows ? [both, memory] : [memory, ...(both === undefined ? [] : [both])]);
  }
  if (period !== undefined && quota !== undefined) {
    const isSame = period.before === period.after;
    if (isSame) ordered.push(quota);
    else ordered.push({ ...quota, after: '-1' }, period, { ...quota, before: '-1' });
  }
  return ordered;
}

function bytesOf(text: string): number {
  return text === '-1' ? Infinity : Number(text);
}

function orNone(value: number, none: string): string {
  return value > 0 ? String(value) : none;
}

/** As the runtimes convert: 2 to 262144 become 1 to 10000. */
export function cpuWeight(shares: number): string {
  return String(1 + Math.floor(((shares - 2) * 9999) / 262_142));
}

/** As the runtimes convert: 10 to 1000 become 1 to 10000. */
export function ioWeight(weight: number): number {
  return 1 + Math.floor(((weight - 10) * 9999) / 990);
}

/** Undefined where this kernel has no such file. Of a list by device only the default counts. */
async function textOf(path: string): Promise<string | undefined> {
  const [line] = (await linesOf(path)) ?? [];
  return line?.trim();
}

async function linesOf(path: string): Promise<string[] | undefined> {
  try {
    return (await readFile(path, 'utf8')).split('\n');
  } catch (error) {
    if (isGone(error)) return undefined;
    throw error;
  }
}

/** One write, never an empty one: the kernel does not see those. */
async function put(path: string, text: string): Promise<void> {
  await writeFile(path, `${text}\n`, { flag: 'r+' });
}

function isGone(error: unknown): boolean {
  return hasCode(error, 'ENOENT') || hasCode(error, 'ENODEV');
}
