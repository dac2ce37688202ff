import { readdirSync } from 'node:fs';
import { cpus } from 'node:os';

import { detectCgroups } from '../../../host/cgroups/cgroups.ts';
import { limitSupport } from '../../../host/cgroups/limit-support.ts';
import { EngineError, hasCode, refuseIf } from '../../../lib/errors.ts';
import type { HostConfig } from '../host-config/host-config-schema.ts';

const MINIMUM_MEMORY_BYTES = 6 * 1024 * 1024;
const BILLION = 1_000_000_000;
/** The kernel's bounds; runc refuses other values, crun takes the nearest. */
const SHARES = { least: 2, most: 262_144 };

/** Throws `invalid` for impossible or contradictory limits. An update may change one of a pair. */
export function checkLimits(limits: HostConfig, { isUpdate = false } = {}): void {
  checkMemory(limits);
  refuseIf(
    limits.Memory === 0 && limits.MemorySwap > 0 && !isUpdate,
    'You should always set the Memory limit when using Memoryswap limit, see usage',
  );
  checkCpus(limits);
  refuseIf(limits.IOMaximumIOps !== 0, 'Invalid QoS settings: linux does not support configuration of maximum IOPs');
  refuseIf(
    limits.IOMaximumBandwidth !== 0,
    'Invalid QoS settings: linux does not support configuration of maximum bandwidth',
  );
  const { CpuShares, BlkioWeight, BlkioWeightDevice, ShmSize, OomScoreAdj, Ulimits } = limits;
  refuseIf(CpuShares !== 0 && CpuShares < SHARES.least, `the minimum allowed cpu-shares is ${SHARES.least}`);
  refuseIf(CpuShares > SHARES.most, `the maximum allowed cpu-shares is ${SHARES.most}`);
  refuseIf(BlkioWeight !== 0 && (BlkioWeight < 10 || BlkioWeight > 1000), 'Range of blkio weight is from 10 to 1000');
  for (const { Path, Weight } of BlkioWeightDevice ?? []) {
    refuseIf(Weight < 10 || Weight > 1000, `Range of blkio weight is from 10 to 1000: ${Path}`);
  }
  refuseIf(ShmSize < 0, 'SHM size can not be less than 0');
  refuseIf(Math.abs(OomScoreAdj) > 1000, `Invalid value ${OomScoreAdj}, range for oom score adj is [-1000, 1000]`);
  for (const { Name, Soft = 0, Hard = 0 } of Ulimits ?? []) {
    refuseIf(
      Hard !== -1 && (Soft === -1 || Soft > Hard),
      `ulimit soft limit must be less than or equal to hard limit: ${Soft} > ${Hard} (${Name})`,
    );
  }
}

function checkMemory({ Memory, MemorySwap, MemoryReservation, KernelMemory, MemorySwappiness }: HostConfig): void {
  refuseIf(Memory !== 0 && Memory < MINIMUM_MEMORY_BYTES, 'Minimum memory limit allowed is 6MB');
  refuseIf(
    Memory > 0 && MemorySwap > 0 && MemorySwap < Memory,
    'Minimum memoryswap limit should be larger than memory limit, see usage',
  );
  refuseIf(
    Memory > 0 && MemoryReservation > Memory,
    'Minimum memory limit can not be less than memory reservation limit, see usage',
  );
  refuseIf(
    MemoryReservation !== 0 && MemoryReservation < MINIMUM_MEMORY_BYTES,
    'Minimum memory reservation allowed is 6MB',
  );
  refuseIf(KernelMemory !== 0 && KernelMemory < MINIMUM_MEMORY_BYTES, 'Minimum kernel memory limit allowed is 6MB');
  refuseIf(
    MemorySwappiness !== null && (MemorySwappiness < 0 || MemorySwappiness > 100),
    `Invalid value: ${MemorySwappiness}, valid memory swappiness range is 0-100`,
  );
}

function checkCpus({ CpuPeriod, CpuQuota, NanoCpus = 0, CpusetCpus, CpusetMems, ...limits }: HostConfig): void {
  const count = cpus().length;
  refuseIf(NanoCpus > 0 && CpuPeriod > 0, 'Conflicting options: Nano CPUs and CPU Period cannot both be set');
  refuseIf(NanoCpus > 0 && CpuQuota > 0, 'Conflicting options: Nano CPUs and CPU Quota cannot both be set');
  refuseIf(
    NanoCpus < 0 || NanoCpus > count * BILLION,
    `Range of CPUs is from 0.01 to ${count}.00, as there are only ${count} CPUs available`,
  );
  refuseIf(
    CpuPeriod !== 0 && (CpuPeriod < 1000 || CpuPeriod > 1_000_000),
    'CPU cfs period can not be less than 1ms (i.e. 1000) or larger than 1s (i.e. 1000000)',
  );
  refuseIf(CpuQuota > 0 && CpuQuota < 1000, 'CPU cfs quota can not be less than 1ms (i.e. 1000)');
  checkRealtime(limits);
  checkSet('cpuset cpus', 'CPUs', CpusetCpus, count);
  checkSet('cpuset mems', 'memory nodes', CpusetMems, memoryNodes());
}

/** Throws `invalid` also where this kernel has no such limits, as dockerd does. */
export function checkRealtime(limits: Pick<HostConfig, 'CpuRealtimePeriod' | 'CpuRealtimeRuntime'>): void {
  const { CpuRealtimePeriod: period = 0, CpuRealtimeRuntime: runtime = 0 } = limits;
  if (period === 0 && runtime === 0) return;
  refuseIf(!limitSupport(detectCgroups()).realtime, 'Your kernel does not support CPU real-time scheduler');
  refuseIf(period < 0 || runtime < 0, 'cpu real-time period and runtime cannot be negative');
  refuseIf(period !== 0 && runtime > period, 'cpu real-time runtime cannot be higher than cpu real-time period');
}

/** Checks lists such as `0-3,5` against what this machine has. */
function checkSet(what: string, requested: string, list: string, available: number): void {
  if (list === '') return;
  const parts = list.split(',').map((part) => /^(\d+)(?:-(\d+))?$/.exec(part.trim()));
  for (const part of parts) {
    if (part === null) throw new EngineError('invalid', `Invalid value ${list} for ${what}: invalid format: ${list}`);
    const last = Number(part[2] ?? part[1]);
    refuseIf(Number(part[1]) > last, `Invalid value ${list} for ${what}: invalid format: ${list}`);
    const range = available === 1 ? '0' : `0-${available - 1}`;
    refuseIf(last >= available, `Requested ${requested} are not available - requested ${list}, available: ${range}`);
  }
}

/** The NUMA nodes, nearly always one. */
function memoryNodes(): number {
  try {
    return Math.max(1, readdirSync('/sys/devices/system/node').filter((name) => /^node\d+$/.test(name)).length);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 1;
    throw error;
  }
}
