import type { Limits, ThrottledDevice } from '../../oci/description.ts';
import type { HostConfig, ThrottleDevice } from '../settings/host-config/host-config-schema.ts';

/** The limits of a HostConfig as a description of a process has them. */
export function limitsOf(hostConfig: HostConfig): Limits {
  return {
    memoryBytes: hostConfig.Memory,
    memoryReservationBytes: hostConfig.MemoryReservation,
    memorySwapBytes: hostConfig.MemorySwap,
    kernelMemoryBytes: hostConfig.KernelMemory,
    kernelTcpBytes: hostConfig.KernelMemoryTCP ?? 0,
    swappiness: hostConfig.MemorySwappiness ?? -1,
    oomKillDisable: hostConfig.OomKillDisable ?? false,
    cpuShares: hostConfig.CpuShares,
    cpuQuotaUs: hostConfig.CpuQuota,
    cpuPeriodUs: hostConfig.CpuPeriod,
    realtimePeriodUs: hostConfig.CpuRealtimePeriod ?? 0,
    realtimeRuntimeUs: hostConfig.CpuRealtimeRuntime ?? 0,
    nanoCpus: hostConfig.NanoCpus ?? 0,
    cpusetCpus: hostConfig.CpusetCpus,
    cpusetMems: hostConfig.CpusetMems,
    pids: hostConfig.PidsLimit ?? 0,
    blkioWeight: hostConfig.BlkioWeight,
    blkioWeightDevices: (hostConfig.BlkioWeightDevice ?? []).map(({ Path, Weight }) => ({
      path: Path,
      weight: Weight,
    })),
    readBps: throttled(hostConfig.BlkioDeviceReadBps),
    writeBps: throttled(hostConfig.BlkioDeviceWriteBps),
    readIops: throttled(hostConfig.BlkioDeviceReadIOps),
    writeIops: throttled(hostConfig.BlkioDeviceWriteIOps),
  };
}

function throttled(devices: readonly ThrottleDevice[] | null): ThrottledDevice[] {
  return (devices ?? []).map(({ Path, Rate }) => ({ path: Path, rate: Number(Rate) }));
}
