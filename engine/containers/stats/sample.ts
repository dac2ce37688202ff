import { totalmem } from 'node:os';

import { readCgroupStats, type CgroupStats } from '../../host/cgroups/cgroup-stats.ts';
import type { Cgroups } from '../../host/cgroups/cgroups.ts';
import { readCpuTime, type CpuTime } from '../../host/cpu-time.ts';
import { interfaceCounters, type InterfaceCounters } from '../../host/network/interface-counters.ts';
import { cgroupPathOf } from '../runs/places.ts';
import { isAlive } from '../state.ts';
import type { Container } from '../store.ts';

/** The usage of a running container. */
export type Usage = Readonly<{
  cgroup: CgroupStats;
  /** The CPU time of the whole machine, read at the same moment. */
  machine: CpuTime & Readonly<{ memoryBytes: number }>;
  interfaces: readonly InterfaceCounters[];
}>;

/** One reading. `usage` is undefined for a container that does not run. */
export type Sample = Readonly<{ at: Temporal.Instant; usage: Usage | undefined }>;

export function readSample(cgroups: Cgroups, container: Container, at: Temporal.Instant): Sample {
  return { at, usage: usageOf(cgroups, container) };
}

function usageOf(cgroups: Cgroups, container: Container): Usage | undefined {
  const { state } = container;
  if (!isAlive(state)) return undefined;
  const cgroup = readCgroupStats(cgroups, cgroupPathOf(container));
  if (cgroup === undefined) return undefined; // it has ended, which is about to be recorded
  const machine = { ...readCpuTime(), memoryBytes: totalmem() };
  const interfaces = container.hostConfig.NetworkMode === 'host' ? [] : interfaceCounters(state.pid).filter(isEndpoint);
  return { cgroup, machine, interfaces };
}

/** The interfaces of networks; a container may create others. */
function isEndpoint({ name }: InterfaceCounters): boolean {
  return /^eth\d+$/.test(name);
}
