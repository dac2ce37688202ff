import { Type, type Static } from 'typebox';

export const StatsQuery = Type.Object({
  stream: Type.Optional(Type.Boolean({ default: true, description: 'False: one sample, then the end' })),
  'one-shot': Type.Optional(Type.Boolean({ description: 'One reading at once, without one before it' })),
});

const Count = Type.Integer();
const Throttling = Type.Object({ periods: Count, throttled_periods: Count, throttled_time: Count });
const CpuStats = Type.Object({
  cpu_usage: Type.Object({
    total_usage: Count,
    percpu_usage: Type.Optional(Type.Array(Count)),
    usage_in_kernelmode: Count,
    usage_in_usermode: Count,
  }),
  system_cpu_usage: Type.Optional(Count),
  online_cpus: Type.Optional(Count),
  throttling_data: Throttling,
});
export type CpuStats = Static<typeof CpuStats>;

const BlkioEntry = Type.Object({ major: Count, minor: Count, op: Type.String(), value: Count });
export type BlkioEntry = Static<typeof BlkioEntry>;
const BlkioList = Type.Union([Type.Array(BlkioEntry), Type.Null()]);

export const NetworkCounters = Type.Object({
  rx_bytes: Count,
  rx_packets: Count,
  rx_errors: Count,
  rx_dropped: Count,
  tx_bytes: Count,
  tx_packets: Count,
  tx_errors: Count,
  tx_dropped: Count,
});
export type NetworkCounters = Static<typeof NetworkCounters>;

/** Times in nanoseconds. Fields that a stopped container lacks are optional. */
export const Stats = Type.Object({
  read: Type.String(),
  preread: Type.String(),
  pids_stats: Type.Object({ current: Type.Optional(Count), limit: Type.Optional(Count) }),
  blkio_stats: Type.Object({
    io_service_bytes_recursive: BlkioList,
    io_serviced_recursive: BlkioList,
    io_queue_recursive: BlkioList,
    io_service_time_recursive: BlkioList,
    io_wait_time_recursive: BlkioList,
    io_merged_recursive: BlkioList,
    io_time_recursive: BlkioList,
    sectors_recursive: BlkioList,
  }),
  os_type: Type.String(),
  num_procs: Count,
  storage_stats: Type.Object({}, { description: 'Empty on Linux' }),
  cpu_stats: CpuStats,
  precpu_stats: CpuStats,
  memory_stats: Type.Object({
    usage: Type.Optional(Count),
    max_usage: Type.Optional(Count),
    stats: Type.Optional(Type.Record(Type.String(), Count)),
    failcnt: Type.Optional(Count),
    limit: Type.Optional(Count),
  }),
  name: Type.String(),
  id: Type.String(),
  networks: Type.Optional(Type.Record(Type.String(), NetworkCounters)),
});
export type Stats = Static<typeof Stats>;

export const UsageQuery = Type.Object({
  interval: Type.Optional(Type.Integer({ minimum: 1, maximum: 3600, description: 'Seconds between two lines' })),
});

/** Counters since the start of a container: a share of the CPU takes two lines. */
const ContainerUsage = Type.Object({
  Id: Type.String(),
  CPU: Type.Integer({ description: 'Nanoseconds' }),
  Memory: Type.Integer({ description: 'Bytes, without files that the kernel could drop' }),
  MemoryLimit: Count,
  NetworkReceived: Count,
  NetworkSent: Count,
  BlockRead: Count,
  BlockWritten: Count,
  PIDs: Count,
});
export type ContainerUsage = Static<typeof ContainerUsage>;

export const UsageLine = Type.Object({
  Read: Type.String(),
  SystemCPU: Type.Integer({ description: 'Nanoseconds of all CPUs of the machine' }),
  CPUs: Count,
  Containers: Type.Array(ContainerUsage),
});
export type UsageLine = Static<typeof UsageLine>;

/** Each line has one container. */
export const UsageRecord = Type.Object({
  Interval: Type.Integer({ description: 'Seconds between two lines' }),
  Lines: Type.Array(UsageLine),
});
export type UsageRecord = Static<typeof UsageRecord>;
