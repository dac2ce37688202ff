import { existsSync, globSync } from 'node:fs';
import { join } from 'node:path';

import type { Cgroups, Controller } from './cgroups.ts';

/** The limits that the kernel and its cgroups support. */
export type LimitSupport = Readonly<{
  memory: boolean;
  swap: boolean;
  swappiness: boolean;
  oomKillDisable: boolean;
  kernelMemory: boolean;
  kernelMemoryTcp: boolean;
  cpuTime: boolean;
  cpuShares: boolean;
  /** Shares of real-time processes: kernels of distributions have none. */
  realtime: boolean;
  cpuset: boolean;
  pids: boolean;
  throttling: boolean;
  blkioWeight: boolean;
}>;

/** Reads the supported limits from the files of the hierarchies, as dockerd does. */
export function limitSupport(cgroups: Cgroups): LimitSupport {
  return cgroups.version === 1 ? supportOfVersion1(cgroups) : supportOfVersion2(cgroups);
}

function supportOfVersion1({ controllers }: Cgroups): LimitSupport {
  const has = (controller: Controller, ...files: string[]): boolean => {
    const mount = controllers.get(controller);
    return mount !== undefined && files.some((file) => existsSync(join(mount, file)));
  };
  return {
    memory: has('memory', 'memory.limit_in_bytes'),
    swap: has('memory', 'memory.memsw.limit_in_bytes'),
    swappiness: has('memory', 'memory.swappiness'),
    oomKillDisable: has('memory', 'memory.oom_control'),
    kernelMemory: has('memory', 'memory.kmem.limit_in_bytes'),
    kernelMemoryTcp: has('memory', 'memory.kmem.tcp.limit_in_bytes'),
    cpuTime: has('cpu', 'cpu.cfs_quota_us'),
    cpuShares: has('cpu', 'cpu.shares'),
    realtime: has('cpu', 'cpu.rt_period_us'),
    cpuset: has('cpuset', 'cpuset.cpus'),
    pids: controllers.has('pids'),
    throttling: has('blkio', 'blkio.throttle.read_bps_device'),
    blkioWeight: has('blkio', 'blkio.weight', 'blkio.bfq.weight'),
  };
}

/** The root has no files of limits, so the controllers tell; version 2 lacks some of version 1's limits. */
function supportOfVersion2({ controllers }: Cgroups): LimitSupport {
  const memory = controllers.get('memory');
  return {
    memory: memory !== undefined,
    swap: memory !== undefined && countsSwap(memory),
    swappiness: false,
    oomKillDisable: false,
    kernelMemory: false,
    kernelMemoryTcp: false,
    cpuTime: controllers.has('cpu'),
    cpuShares: controllers.has('cpu'),
    realtime: false,
    cpuset: controllers.has('cpuset'),
    pids: controllers.has('pids'),
    throttling: controllers.has('blkio'),
    blkioWeight: controllers.has('blkio'),
  };
}

/** A kernel may be told not to (`swapaccount=0`); only cgroups below the root show it. */
function countsSwap(mount: string): boolean {
  const limited = globSync(join(mount, '*/memory.max'));
  return limited.length === 0 || limited.some((file) => existsSync(file.replace(/max$/, 'swap.max')));
}
