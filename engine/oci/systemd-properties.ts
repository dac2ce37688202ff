import { cpuWeight, ioWeight } from '../host/cgroups/cgroup-limits.ts';
import type { Cgroups } from '../host/cgroups/cgroups.ts';
import type { UnitProperties } from '../host/cgroups/systemd.ts';
import type { Limits } from './description.ts';
import { cpuTime } from './resources.ts';

const DEFAULT_PERIOD_US = 100_000;
/** systemd counts CPU time in hundredths of a second for each second. */
const PERCENT_US = 10_000;
const USUAL_IO_WEIGHT = 100;

/**
 * Limits as systemd names them, which differs by the version of cgroups. systemd resets limits of a scope that it was
 * not told with its next `daemon-reload`; crun tells it nearly none, and runc not the weight of input and output.
 * Limits without a property stay: on version 1 swap, reservation and sets of processors.
 */
export function systemdProperties(limits: Limits, version: Cgroups['version']): UnitProperties {
  const { cpuShares, memoryBytes, memorySwapBytes, memoryReservationBytes, pids, blkioWeight } = limits;
  const { quota, period } = cpuTime(limits);
  const perSecondUs = (quota * 1_000_000) / (period || DEFAULT_PERIOD_US);
  const inBoth: UnitProperties = {
    CPUQuotaPerSecUSec: quota > 0 ? Math.ceil(perSecondUs / PERCENT_US) * PERCENT_US : undefined,
    CPUQuotaPeriodUSec: period > 0 ? period : undefined,
    TasksMax: pids > 0 ? pids : undefined,
  };
  if (version === 1) {
    return {
      ...inBoth,
      CPUShares: cpuShares > 0 ? cpuShares : undefined,
      MemoryLimit: memoryBytes > 0 ? memoryBytes : undefined,
      BlockIOWeight: blkioWeight > 0 ? blkioWeight : undefined,
    };
  }
  return {
    ...inBoth,
    CPUWeight: cpuShares > 0 ? Number(cpuWeight(cpuShares)) : undefined,
    AllowedCPUs: limits.cpusetCpus || undefined,
    AllowedMemoryNodes: limits.cpusetMems || undefined,
    MemoryMax: memoryBytes > 0 ? memoryBytes : undefined,
    MemorySwapMax: memoryBytes > 0 && memorySwapBytes > 0 ? memorySwapBytes - memoryBytes : undefined,
    MemoryLow: memoryReservationBytes > 0 ? memoryReservationBytes : undefined,
    IOWeight: blkioWeight > 0 ? ioWeight(blkioWeight) : usualWeight(limits),
  };
}

/**
 * The kernel's own weight, for limits of devices that systemd has no names for here: a scope without any property of
 * input and output does not have the files that crun writes these limits into.
 */
function usualWeight({ blkioWeightDevices, readBps, writeBps, readIops, writeIops }: Limits): number | undefined {
  const ofDevices = [blkioWeightDevices, readBps, writeBps, readIops, writeIops];
  return ofDevices.some(({ length }) => length > 0) ? USUAL_IO_WEIGHT : undefined;
}

/** For both runtimes, which pass them on. Lists of processors have no form here; a reload leaves those alone. */
export function systemdAnnotations(limits: Limits, version: Cgroups['version']): Record<string, string> {
  const numbers = Object.entries(systemdProperties(limits, version)).filter(([, value]) => typeof value === 'number');
  return Object.fromEntries(numbers.map(([name, value]) => [`org.systemd.property.${name}`, `uint64 ${value}`]));
}
