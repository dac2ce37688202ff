import { existsSync } from 'node:fs';

import type { HostConfig } from '../host-config-schema.ts';

/** The limits that the kernel and its cgroups support. */
export type LimitSupport = Readonly<{
  swap: boolean;
  swappiness: boolean;
  oomKillDisable: boolean;
  kernelMemory: boolean;
  blkioWeight: boolean;
}>;

let known: LimitSupport | undefined;

/** Detected from the cgroup files, once. */
export function limitSupport(): LimitSupport {
  if (known !== undefined) return known;
  const isVersion2 = has('cgroup.controllers');
  known = {
    swap: isVersion2 || has('memory/memory.memsw.limit_in_bytes'),
    swappiness: has('memory/memory.swappiness'),
    oomKillDisable: has('memory/memory.oom_control'),
    kernelMemory: has('memory/memory.kmem.limit_in_bytes'),
    blkioWeight: isVersion2 || has('blkio/blkio.weight', 'blkio/blkio.bfq.weight'),
  };
  return known;
}

function has(...files: string[]): boolean {
  return files.some((file) => existsSync(`/sys/fs/cgroup/${file}`));
}

/** Removes limits that this machine does not support, with dockerd's warnings; keeps the others. */
export function withoutUnsupported(
  hostConfig: HostConfig,
  support: LimitSupport,
): { hostConfig: HostConfig; warnings: string[] } {
  const warnings: string[] = [];
  const kept = { ...hostConfig };
  const discard = (wanted: boolean, supported: boolean, what: string, gone: string, change: () => void): void => {
    if (!wanted || supported) return;
    warnings.push(`Your kernel does not support ${what} or the cgroup is not mounted. ${gone} discarded.`);
    change();
  };
  discard(kept.MemorySwap > 0, support.swap, 'swap limit capabilities', 'Swap limit', () => (kept.MemorySwap = -1));
  discard(
    (kept.MemorySwappiness ?? -1) !== -1,
    support.swappiness,
    'memory swappiness capabilities',
    'Memory swappiness',
    () => (kept.MemorySwappiness = null),
  );
  discard(kept.OomKillDisable === true, support.oomKillDisable, 'OomKillDisable', 'OomKillDisable', () => {
    kept.OomKillDisable = false;
  });
  discard(kept.KernelMemory > 0, support.kernelMemory, 'kernel memory limit capabilities', 'Limitation', () => {
    kept.KernelMemory = 0;
  });
  discard(kept.BlkioWeight > 0, support.blkioWeight, 'Block I/O weight', 'Weight', () => (kept.BlkioWeight = 0));
  discard(
    (kept.BlkioWeightDevice ?? []).length > 0,
    support.blkioWeight,
    'Block I/O weight_device',
    'Weight-device',
    () => {
      kept.BlkioWeightDevice = [];
    },
  );
  const advised = advice(kept);
  kept.CpuPercent = 0;
  return { hostConfig: kept, warnings: [...warnings, ...advised] };
}

function advice({ Memory, OomKillDisable, KernelMemory, CpuPercent, NetworkMode, PortBindings }: HostConfig): string[] {
  const said: [boolean, string][] = [
    [
      OomKillDisable === true && Memory === 0,
      'OOM killer is disabled for the container, but no memory limit is set, this can result in the system running out of resources.',
    ],
    [KernelMemory > 0, 'Specifying a kernel memory limit is deprecated and will be removed in a future release.'],
    [CpuPercent > 0, 'linux does not support CPU percent. Percent discarded.'],
    [
      NetworkMode === 'host' && Object.keys(PortBindings).length > 0,
      'Published ports are discarded when using host network mode',
    ],
  ];
  return said.filter(([applies]) => applies).map(([, text]) => text);
}
