import type { Engine } from '../../engine.ts';
import type { DeviceCounter } from '../../host/cgroups/cgroup-stats.ts';
import { readCpuTime } from '../../host/cpu-time.ts';
import { sleep } from '../../lib/clock.ts';
import { Slices } from '../../lib/concurrency/slices.ts';
import { isAlive } from '../state.ts';
import type { Usage } from './sample.ts';
import type { ContainerUsage, UsageLine } from './schema.ts';

type Needs = Pick<Engine, 'clock' | 'containers' | 'samplers'>;
type UsageClient = Readonly<{ write: (line: string) => Promise<void>; signal: AbortSignal }>;

export const USAGE_INTERVAL_SECONDS = 5;
/** The second line comes sooner, because a share of the CPU takes two. */
const FIRST_INTERVAL_MS = 1000;

/** The usage of all running containers as a line of JSON, at once and in intervals, until the client leaves. */
export async function streamUsage(engine: Needs, intervalMs: number, client: UsageClient): Promise<void> {
  let pauseMs = Math.min(FIRST_INTERVAL_MS, intervalMs);
  while (!client.signal.aborted) {
    await client.write(`${JSON.stringify(await readUsage(engine, client.signal))}\n`);
    await sleep(engine.clock, pauseMs, client.signal);
    pauseMs = intervalMs;
  }
}

async function readUsage({ clock, containers, samplers }: Needs, signal: AbortSignal): Promise<UsageLine> {
  const slices = new Slices(signal);
  const read: ContainerUsage[] = [];
  for (const { id, state } of containers.all()) {
    if (!isAlive(state)) continue;
    const usage = samplers.one(id)?.usage;
    if (usage !== undefined) read.push(presentUsage(id, usage));
    if (slices.isOver) await slices.pause();
  }
  const { totalNs, online } = readCpuTime();
  return { Read: clock.now().toString(), SystemCPU: totalNs, CPUs: online, Containers: read };
}

/** Counters of one reading. */
export function presentUsage(
  Id: string,
  { cgroup: { cpu, memory, pids, io }, machine, interfaces }: Usage,
): ContainerUsage {
  const { total_inactive_file: inheritedFiles, inactive_file: files = 0 } = memory.counters;
  return {
    Id,
    CPU: cpu.totalNs,
    Memory: Math.max(0, memory.usageBytes - Number(inheritedFiles ?? files)),
    MemoryLimit: Math.min(memory.limitBytes, machine.memoryBytes),
    NetworkReceived: sum(interfaces.map(({ rxBytes }) => rxBytes)),
    NetworkSent: sum(interfaces.map(({ txBytes }) => txBytes)),
    BlockRead: bytesOf(io.bytes, 'read'),
    BlockWritten: bytesOf(io.bytes, 'write'),
    PIDs: pids.current,
  };
}

function bytesOf(counters: readonly DeviceCounter[], operation: string): number {
  return sum(counters.filter((one) => one.operation.toLowerCase() === operation).map(({ value }) => value));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
