import type { CgroupStats, DeviceCounter } from '../../host/cgroups/cgroup-stats.ts';
import type { InterfaceCounters } from '../../host/network/interface-counters.ts';
import type { Sample, Usage } from './sample.ts';
import type { BlkioEntry, CpuStats, NetworkCounters, Stats } from './schema.ts';

/** dockerd's answer for a stopped container, and for the reading before the first. */
const NEVER = '0001-01-01T00:00:00Z';
const NO_CPU: CpuStats = {
  cpu_usage: { total_usage: 0, usage_in_kernelmode: 0, usage_in_usermode: 0 },
  throttling_data: { periods: 0, throttled_periods: 0, throttled_time: 0 },
};

type Named = Readonly<{ id: string; name: string }>;

/** A reading as GET /containers/{id}/stats shows it, with the one before it. */
export function presentStats({ id, name }: Named, sample: Sample, before: Sample | undefined): Stats {
  const { usage } = sample;
  return {
    read: readAt(sample),
    preread: readAt(before),
    pids_stats: usage === undefined ? {} : pidsOf(usage.cgroup),
    blkio_stats: blkioOf(usage?.cgroup.io),
    os_type: 'linux',
    num_procs: 0, // of another system, like the storage
    storage_stats: {},
    cpu_stats: cpuOf(usage),
    precpu_stats: cpuOf(before?.usage),
    memory_stats: usage === undefined ? {} : memoryOf(usage),
    name: `/${name}`,
    id,
    ...networksOf(usage?.interfaces ?? []),
  };
}

function readAt(sample: Sample | undefined): string {
  return sample?.usage === undefined ? NEVER : sample.at.toString();
}

function pidsOf({ pids }: CgroupStats): Stats['pids_stats'] {
  return { current: pids.current, ...(pids.limit !== Infinity && { limit: pids.limit }) };
}

function cpuOf(usage: Usage | undefined): CpuStats {
  if (usage === undefined) return NO_CPU;
  const { cpu } = usage.cgroup;
  return {
    cpu_usage: {
      total_usage: cpu.totalNs,
      ...(cpu.perCpuNs !== undefined && { percpu_usage: [...cpu.perCpuNs] }),
      usage_in_kernelmode: cpu.kernelNs,
      usage_in_usermode: cpu.userNs,
    },
    system_cpu_usage: usage.machine.totalNs,
    online_cpus: usage.machine.online,
    throttling_data: {
      periods: cpu.periods,
      throttled_periods: cpu.throttledPeriods,
      throttled_time: cpu.throttledNs,
    },
  };
}

/** Without a limit of its own: the machine's memory. */
function memoryOf({ cgroup: { memory }, machine }: Usage): Stats['memory_stats'] {
  return {
    usage: memory.usageBytes,
    max_usage: memory.maxUsageBytes,
    stats: Object.fromEntries(Object.entries(memory.counters).map(([name, value]) => [name, exact(value)])),
    failcnt: memory.failures,
    limit: Math.min(memory.limitBytes, machine.memoryBytes),
  };
}

/** Every digit, also of a number that JavaScript would round. */
function exact(value: number | bigint): number {
  return typeof value === 'number' ? value : (JSON.rawJSON(String(value)) as unknown as number);
}

function blkioOf(io: CgroupStats['io'] | undefined): Stats['blkio_stats'] {
  return {
    io_service_bytes_recursive: entries(io?.bytes),
    io_serviced_recursive: entries(io?.operations),
    io_queue_recursive: entries(io?.more?.queued),
    io_service_time_recursive: entries(io?.more?.serviceTime),
    io_wait_time_recursive: entries(io?.more?.waitTime),
    io_merged_recursive: entries(io?.more?.merged),
    io_time_recursive: entries(io?.more?.time),
    sectors_recursive: entries(io?.more?.sectors),
  };
}

function entries(counters: readonly DeviceCounter[] | undefined): BlkioEntry[] | null {
  return counters?.map(({ major, minor, operation, value }) => ({ major, minor, op: operation, value })) ?? null;
}

function networksOf(interfaces: readonly InterfaceCounters[]): { networks?: Record<string, NetworkCounters> } {
  if (interfaces.length === 0) return {};
  return { networks: Object.fromEntries(interfaces.map((one) => [one.name, networkCounters(one)])) };
}

function networkCounters(one: InterfaceCounters): NetworkCounters {
  return {
    rx_bytes: one.rxBytes,
    rx_packets: one.rxPackets,
    rx_errors: one.rxErrors,
    rx_dropped: one.rxDropped,
    tx_bytes: one.txBytes,
    tx_packets: one.txPackets,
    tx_errors: one.txErrors,
    tx_dropped: one.txDropped,
  };
}
