import { blkioWeights, isScheduledByBfq } from '../../../host/cgroups/blkio-weights.ts';
import { detectCgroups } from '../../../host/cgroups/cgroups.ts';
import type { LimitSupport } from '../../../host/cgroups/limit-support.ts';
import { blockDevice } from '../../../oci/resources.ts';
import type { HostConfig } from '../host-config/host-config-schema.ts';

type Support = Omit<LimitSupport, 'blkioWeight' | 'realtime'>;

/** Called only when needed: the answer may need a cgroup. */
export type WeightSupport = Readonly<{
  any: () => boolean;
  /** Whether this device can have a weight of its own. */
  of: (path: string) => boolean;
}>;

const weightsOfKernel: WeightSupport = {
  any: () => blkioWeights(detectCgroups()) !== undefined,
  of: (path) => {
    const weights = blkioWeights(detectCgroups());
    if (weights !== 'bfq') return weights === 'runtime';
    const device = blockDevice(path);
    return device === undefined || isScheduledByBfq(device.major, device.minor); // a missing one is an error of the start
  },
};

/** Removes limits that this machine does not support, with dockerd's warnings; keeps the others. */
export function withoutUnsupported(
  hostConfig: HostConfig,
  support: Support,
  weightSupport = weightsOfKernel,
): { hostConfig: HostConfig; warnings: string[] } {
  const warnings: string[] = [];
  const kept = { ...hostConfig };
  /** `supported` is called only when needed. */
  const drop = (wanted: boolean, supported: () => boolean, warning: string, change: Partial<HostConfig>): void => {
    if (!wanted || supported()) return;
    warnings.push(`Your kernel does not support ${warning}`);
    Object.assign(kept, change);
  };

  drop(kept.Memory > 0, () => support.memory, missing('memory limit capabilities', 'Limitation discarded.'), {
    Memory: 0,
    MemorySwap: -1,
  });
  const wantsSwap = kept.MemorySwap > 0;
  drop(wantsSwap, () => support.swap, missing('swap limit capabilities', 'Memory limited without swap.'), {
    MemorySwap: -1,
  });
  const swappiness = missing('memory swappiness capabilities', 'Memory swappiness discarded.');
  drop((kept.MemorySwappiness ?? -1) !== -1, () => support.swappiness, swappiness, { MemorySwappiness: null });
  const reservation = missing('memory soft limit capabilities', 'Limitation discarded.');
  drop(kept.MemoryReservation > 0, () => support.memory, reservation, { MemoryReservation: 0 });
  if (kept.KernelMemory > 0) {
    warnings.push('Specifying a kernel memory limit is deprecated and will be removed in a future release.');
  }
  const kernelMemory = missing('kernel memory limit capabilities', 'Limitation discarded.');
  drop(kept.KernelMemory > 0, () => support.kernelMemory, kernelMemory, { KernelMemory: 0 });
  const kernelTcp = missing('kernel memory TCP limit capabilities', 'Limitation discarded.');
  drop((kept.KernelMemoryTCP ?? 0) > 0, () => support.kernelMemoryTcp, kernelTcp, { KernelMemoryTCP: 0 });
  const oom = 'OomKillDisable. OomKillDisable discarded.';
  drop(kept.OomKillDisable === true, () => support.oomKillDisable, oom, { OomKillDisable: false });
  const pids = missing('PIDs limit capabilities', 'PIDs limit discarded.');
  drop((kept.PidsLimit ?? 0) > 0, () => support.pids, pids, { PidsLimit: null });
  drop(kept.CpuShares > 0, () => support.cpuShares, missing('CPU shares', 'Shares discarded.'), { CpuShares: 0 });
  const cfs = 'CPU CFS scheduler. CPU period/quota discarded.';
  const wantsTime = kept.CpuPeriod > 0 || kept.CpuQuota > 0 || (kept.NanoCpus ?? 0) > 0;
  drop(wantsTime, () => support.cpuTime, cfs, { CpuPeriod: 0, CpuQuota: 0, NanoCpus: 0 });
  const wantsSet = kept.CpusetCpus !== '' || kept.CpusetMems !== '';
  drop(wantsSet, () => support.cpuset, missing('cpuset', 'Cpuset discarded.'), { CpusetCpus: '', CpusetMems: '' });

  const weight = missing('Block I/O weight', 'Weight discarded.');
  drop(kept.BlkioWeight > 0, () => weightSupport.any(), weight, { BlkioWeight: 0 });
  const devices = kept.BlkioWeightDevice ?? [];
  const weights = missing('Block I/O weight_device', 'Weight-device discarded.');
  drop(devices.length > 0, () => devices.every(({ Path }) => weightSupport.of(Path)), weights, {
    BlkioWeightDevice: [],
  });
  for (const [field, what, gone] of THROTTLES) {
    drop((kept[field] ?? []).length > 0, () => support.throttling, missing(what, `Block I/O ${gone} discarded.`), {
      [field]: [],
    });
  }
  const advised = advice(kept);
  kept.CpuPercent = 0;
  return { hostConfig: kept, warnings: [...warnings, ...advised] };
}

function missing(what: string, gone: string): string {
  return `${what} or the cgroup is not mounted. ${gone}`;
}

const THROTTLES = [
  ['BlkioDeviceReadBps', 'BPS Block I/O read limit', 'BPS read limit'],
  ['BlkioDeviceWriteBps', 'BPS Block I/O write limit', 'BPS write limit'],
  ['BlkioDeviceReadIOps', 'IOPS Block read limit', 'IOPS read limit'],
  ['BlkioDeviceWriteIOps', 'IOPS Block write limit', 'IOPS write limit'],
] as const;

function advice({ Memory, OomKillDisable, CpuPercent, NetworkMode, PortBindings }: HostConfig): string[] {
  const said: [boolean, string][] = [
    [
      OomKillDisable === true && Memory === 0,
      'OOM killer is disabled for the container, but no memory limit is set, this can result in the system running out of resources.',
    ],
    [CpuPercent > 0, 'linux does not support CPU percent. Percent discarded.'],
    [
      NetworkMode === 'host' && Object.keys(PortBindings).length > 0,
      'Published ports are discarded when using host network mode',
    ],
  ];
  return said.filter(([applies]) => applies).map(([, text]) => text);
}
