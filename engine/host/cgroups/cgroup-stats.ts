import { join } from 'node:path';

import { readValue, type Cgroups, type Controller } from './cgroups.ts';

/** A counter of one device, such as `254:0 Read 4096`. */
export type DeviceCounter = Readonly<{ major: number; minor: number; operation: string; value: number }>;

/** The kernel's counters of a cgroup; those of a missing controller are 0. */
export type CgroupStats = Readonly<{
  cpu: Readonly<{
    totalNs: number;
    kernelNs: number;
    userNs: number;
    /** Undefined in version 2, which does not count by CPU. */
    perCpuNs: readonly number[] | undefined;
    periods: number;
    throttledPeriods: number;
    throttledNs: number;
  }>;
  memory: Readonly<{
    usageBytes: number;
    maxUsageBytes: number;
    failures: number;
    /** Infinity: none. */
    limitBytes: number;
    /** The lines of memory.stat; some are larger than a number is exact. */
    counters: Readonly<Record<string, number | bigint>>;
  }>;
  pids: Readonly<{ current: number; limit: number }>;
  io: Readonly<{
    bytes: readonly DeviceCounter[];
    operations: readonly DeviceCounter[];
    /** Undefined in version 2, which has none of these. */
    more: Readonly<Record<MoreIo, readonly DeviceCounter[]>> | undefined;
  }>;
}>;
type MoreIo = 'queued' | 'serviceTime' | 'waitTime' | 'merged' | 'time' | 'sectors';

/** Reads the counters of the cgroup `path`; undefined when it is gone. */
export function readCgroupStats(cgroups: Cgroups, path: string): CgroupStats | undefined {
  const read: Read = (controller, file) => {
    const mount = cgroups.controllers.get(controller);
    return mount === undefined ? undefined : readValue(join(mount, path, file));
  };
  return cgroups.version === 1 ? readVersion1(read) : readVersion2(read);
}

type Read = (controller: Controller, file: string) => string | undefined;

const NS_PER_TICK = 10_000_000;
const NS_PER_US = 1000;

function readVersion1(read: Read): CgroupStats | undefined {
  const perCpu = read('cpuacct', 'cpuacct.usage_percpu');
  const usage = read('memory', 'memory.usage_in_bytes');
  if (perCpu === undefined && usage === undefined) return undefined;
  const perCpuNs = (perCpu ?? '').split(/\s+/).filter((text) => text !== '');
  const ticks = pairs(read('cpuacct', 'cpuacct.stat'));
  const throttled = pairs(read('cpu', 'cpu.stat'));
  return {
    cpu: {
      totalNs: number(read('cpuacct', 'cpuacct.usage')),
      kernelNs: number(ticks.system) * NS_PER_TICK,
      userNs: number(ticks.user) * NS_PER_TICK,
      perCpuNs: perCpuNs.map(Number),
      periods: number(throttled.nr_periods),
      throttledPeriods: number(throttled.nr_throttled),
      throttledNs: number(throttled.throttled_time),
    },
    memory: {
      usageBytes: number(usage),
      maxUsageBytes: number(read('memory', 'memory.max_usage_in_bytes')),
      failures: number(read('memory', 'memory.failcnt')),
      limitBytes: limit(read('memory', 'memory.limit_in_bytes')),
      counters: counters(read('memory', 'memory.stat')),
    },
    pids: pidsOf(read),
    io: ioOfVersion1(read),
  };
}

/** A scheduler that counts by cgroup has all files; otherwise only the throttling layer counts. */
function ioOfVersion1(read: Read): CgroupStats['io'] {
  const list = (file: string): DeviceCounter[] => deviceCounters(read('blkio', `blkio.${file}`));
  const serviced = read('blkio', 'blkio.io_serviced_recursive');
  if (serviced === undefined) {
    const more = { queued: [], serviceTime: [], waitTime: [], merged: [], time: [], sectors: [] };
    return { bytes: list('throttle.io_service_bytes'), operations: list('throttle.io_serviced'), more };
  }
  return {
    bytes: list('io_service_bytes_recursive'),
    operations: deviceCounters(serviced),
    more: {
      queued: list('io_queued_recursive'),
      serviceTime: list('io_service_time_recursive'),
      waitTime: list('io_wait_time_recursive'),
      merged: list('io_merged_recursive'),
      time: list('time_recursive'),
      sectors: list('sectors_recursive'),
    },
  };
}

function readVersion2(read: Read): CgroupStats | undefined {
  const cpuStat = read('cpu', 'cpu.stat');
  const usage = read('memory', 'memory.current');
  if (cpuStat === undefined && usage === undefined) return undefined;
  const cpu = pairs(cpuStat);
  return {
    cpu: {
      totalNs: number(cpu.usage_usec) * NS_PER_US,
      kernelNs: number(cpu.system_usec) * NS_PER_US,
      userNs: number(cpu.user_usec) * NS_PER_US,
      perCpuNs: undefined,
      periods: number(cpu.nr_periods),
      throttledPeriods: number(cpu.nr_throttled),
      throttledNs: number(cpu.throttled_usec) * NS_PER_US,
    },
    memory: {
      usageBytes: number(usage),
      maxUsageBytes: number(read('memory', 'memory.peak')), // since Linux 5.19
      failures: number(pairs(read('memory', 'memory.events')).oom),
      limitBytes: limit(read('memory', 'memory.max')),
      counters: withOldNames(counters(read('memory', 'memory.stat'))),
    },
    pids: pidsOf(read),
    io: ioOfVersion2(read('blkio', 'io.stat')),
  };
}

/** Linux 5.9 split these counters by kind; clients know the sums. */
function withOldNames(split: Record<string, number | bigint>): Record<string, number | bigint> {
  for (const name of ['workingset_refault', 'workingset_activate']) {
    if (split[name] !== undefined || split[`${name}_anon`] === undefined) continue;
    split[name] = Number(split[`${name}_anon`]) + Number(split[`${name}_file`] ?? 0);
  }
  return split;
}

/** Lines such as `254:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0`. */
function ioOfVersion2(stat = ''): CgroupStats['io'] {
  const bytes: DeviceCounter[] = [];
  const operations: DeviceCounter[] = [];
  for (const line of stat.split('\n')) {
    const [device = '', ...fields] = line.split(' ');
    const found = /^(\d+):(\d+)$/.exec(device);
    if (found === null || !line.includes('=')) continue; // some kernels list devices that have no counters yet
    const of = { major: Number(found[1]), minor: Number(found[2]) };
    const values = new Map(fields.map((field) => field.split('=') as [string, string]));
    bytes.push({ ...of, operation: 'read', value: number(values.get('rbytes')) });
    bytes.push({ ...of, operation: 'write', value: number(values.get('wbytes')) });
    operations.push({ ...of, operation: 'read', value: number(values.get('rios')) });
    operations.push({ ...of, operation: 'write', value: number(values.get('wios')) });
  }
  return { bytes, operations, more: undefined };
}

function pidsOf(read: Read): CgroupStats['pids'] {
  return { current: number(read('pids', 'pids.current')), limit: limit(read('pids', 'pids.max')) };
}

/** Lines such as `254:0 Read 4096`; the last line is a sum over all devices. Some files have no operation. */
function deviceCounters(text = ''): DeviceCounter[] {
  const list: DeviceCounter[] = [];
  for (const line of text.split('\n')) {
    const found = /^(\d+):(\d+) (?:(\w+) )?(\d+)$/.exec(line);
    if (found === null) continue;
    const [, major, minor, operation = '', value] = found;
    list.push({ major: Number(major), minor: Number(minor), operation, value: Number(value) });
  }
  return list;
}

function pairs(text = ''): Record<string, string> {
  const found: Record<string, string> = {};
  for (const line of text.split('\n')) {
    const space = line.indexOf(' ');
    if (space > 0) found[line.slice(0, space)] = line.slice(space + 1);
  }
  return found;
}

function counters(text: string | undefined): Record<string, number | bigint> {
  const found: Record<string, number | bigint> = {};
  for (const [name, digits] of Object.entries(pairs(text))) {
    const value = Number(digits);
    found[name] = Number.isSafeInteger(value) ? value : BigInt(digits);
  }
  return found;
}

function number(text: string | undefined): number {
  return text === undefined ? 0 : Number(text);
}

/** Version 1 has no word for "none": it answers with the largest number of pages. */
function limit(text: string | undefined): number {
  return text === undefined || text === 'max' || Number(text) >= 2 ** 62 ? Infinity : Number(text);
}
