import type { LimitSupport } from '../../../host/limit-support.ts';
import type { HostConfig } from '../host-config-schema.ts';

type Support = Pick<LimitSupport, 'swap' | 'swappiness' | 'oomKillDisable' | 'kernelMemory' | 'blkioWeight'>;

/** Removes limits that this machine does not support, with dockerd's warnings; keeps the others. */
export function withoutUnsupported(
  hostConfig: HostConfig,
  support: Support,
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
  if (kept.KernelMemory > 0) {
    warnings.push('Specifying a kernel memory limit is deprecated and will be removed in a future release.');
  }
  discard(kept.KernelMemory > 0, support.kernelMemory, 'kernel memory limit capabilities', 'Limitation', () => {
    kept.KernelMemory = 0;
  });
  if (kept.OomKillDisable === true && !support.oomKillDisable) {
    warnings.push('Your kernel does not support OomKillDisable. OomKillDisable discarded.');
    kept.OomKillDisable = false;
  }
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
