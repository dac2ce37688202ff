import type { ContainerUsage, UsageLine } from '@gantry/engine/containers/stats/schema.ts';

import { open } from '../api/request.ts';
import { bytesOf, follow, jsonLines } from '../api/streams.ts';
import { Store } from '../parts/store.ts';

export type Usage = Readonly<{
  /** In percent of one CPU. */
  cpu: number;
  memory: number;
  memoryLimit: number;
  /** Bytes a second. */
  received: number;
  sent: number;
  read: number;
  written: number;
  pids: number;
}>;

/** The usage of running containers by id. */
export const usages = new Store<ReadonlyMap<string, Usage>>(new Map());

/** Reads the usage while somebody looks; returns the function that ends it. */
export function followUsage(): () => void {
  return follow({
    read: async (signal) => {
      let before: UsageLine | undefined;
      const response = await open('GET', '/containers/stats', { signal });
      for await (const line of jsonLines<UsageLine>(bytesOf(response))) {
        if (before !== undefined) usages.set(usageBetween(before, line));
        before = line;
      }
    },
  });
}

/** Rates between two readings. */
export function usageBetween(before: UsageLine, line: UsageLine): ReadonlyMap<string, Usage> {
  const earlier = new Map(before.Containers.map((one) => [one.Id, one]));
  const seconds = (Date.parse(line.Read) - Date.parse(before.Read)) / 1000;
  const system = line.SystemCPU - before.SystemCPU;
  return new Map(
    line.Containers.map((now) => {
      const last = earlier.get(now.Id) ?? now;
      const rate = (field: keyof ContainerUsage): number =>
        seconds <= 0 ? 0 : Math.max(0, Number(now[field]) - Number(last[field])) / seconds;
      return [
        now.Id,
        {
          cpu: system <= 0 ? 0 : (Math.max(0, now.CPU - last.CPU) / system) * line.CPUs * 100,
          memory: now.Memory,
          memoryLimit: now.MemoryLimit,
          received: rate('NetworkReceived'),
          sent: rate('NetworkSent'),
          read: rate('BlockRead'),
          written: rate('BlockWritten'),
          pids: now.PIDs,
        },
      ];
    }),
  );
}
