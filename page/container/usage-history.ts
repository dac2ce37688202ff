import type { Stats } from '@gantry/client/containers.ts';
import type { UsageRecord } from '@gantry/engine/containers/stats/schema.ts';

import { call, open } from '../api/request.ts';
import { bytesOf, follow, jsonLines } from '../api/streams.ts';
import { usageBetween } from '../containers/usage.ts';
import { Store } from '../parts/store.ts';

/** One reading: shares of a CPU in percent, bytes, bytes a second. */
export type Reading = Readonly<{
  /** UNIX seconds. */
  at: number;
  cpu: number;
  memory: number;
  received: number;
  sent: number;
  read: number;
  written: number;
  pids: number;
}>;

const MAX_READINGS = 3600;
const MAX_HISTORIES = 20;
const histories = new Map<string, Store<readonly Reading[]>>();

/** The readings of a container of the last hour: those of the engine, and then one a second of this page. */
export function historyOf(id: string): Store<readonly Reading[]> {
  const known = histories.get(id) ?? new Store<readonly Reading[]>([]);
  histories.delete(id);
  histories.set(id, known);
  for (const oldest of histories.keys()) {
    if (histories.size <= MAX_HISTORIES) break;
    histories.delete(oldest);
  }
  return known;
}

/** Adds a reading a second while somebody looks; returns the function that ends it. */
export function followHistory(id: string): () => void {
  const history = historyOf(id);
  return follow({
    read: async (signal) => {
      const stored = await storedReadings(id, signal);
      history.set(withStored(history.value, stored));
      let before: Stats | undefined;
      for await (const now of jsonLines<Stats>(bytesOf(await open('GET', `/containers/${id}/stats`, { signal })))) {
        if (before?.memory_stats.usage !== undefined && now.memory_stats.usage !== undefined) {
          history.set([...history.value.slice(1 - MAX_READINGS), readingOf(before, now)]);
        }
        before = now;
      }
    },
  });
}

/** The engine's readings stand where this page has none of its own. */
function withStored(own: readonly Reading[], stored: readonly Reading[]): Reading[] {
  const first = own[0]?.at ?? Infinity;
  const last = own.at(-1)?.at ?? Infinity;
  return [...stored.filter(({ at }) => at < first), ...own, ...stored.filter(({ at }) => at > last)];
}

/** Readings that the engine has recorded; a reading takes two of its lines. */
async function storedReadings(id: string, signal: AbortSignal): Promise<Reading[]> {
  const { Lines } = await call<UsageRecord>('GET', `/containers/${id}/usage`, { signal });
  return Lines.slice(1).map((line, index) => {
    const { memoryLimit: _limit, ...usage } = usageBetween(Lines[index]!, line).get(id)!;
    return { at: Date.parse(line.Read) / 1000, ...usage };
  });
}

/** Rates between two samples. */
export function readingOf(before: Stats, now: Stats): Reading {
  const seconds = (Date.parse(now.read) - Date.parse(before.read)) / 1000;
  const system = (now.cpu_stats.system_cpu_usage ?? 0) - (before.cpu_stats.system_cpu_usage ?? 0);
  const own = now.cpu_stats.cpu_usage.total_usage - before.cpu_stats.cpu_usage.total_usage;
  const rate = (count: (stats: Stats) => number): number =>
    seconds <= 0 ? 0 : Math.max(0, count(now) - count(before)) / seconds;
  const { usage = 0, stats = {} } = now.memory_stats;
  return {
    at: Date.parse(now.read) / 1000,
    cpu: system <= 0 ? 0 : (Math.max(0, own) / system) * (now.cpu_stats.online_cpus ?? 1) * 100,
    memory: Math.max(0, usage - (stats['total_inactive_file'] ?? stats['inactive_file'] ?? 0)),
    received: rate(({ networks }) => sum(Object.values(networks ?? {}).map(({ rx_bytes }) => rx_bytes))),
    sent: rate(({ networks }) => sum(Object.values(networks ?? {}).map(({ tx_bytes }) => tx_bytes))),
    read: rate((one) => bytes(one, 'read')),
    written: rate((one) => bytes(one, 'write')),
    pids: now.pids_stats.current ?? 0,
  };
}

function bytes({ blkio_stats }: Stats, operation: string): number {
  const entries = blkio_stats.io_service_bytes_recursive ?? [];
  return sum(entries.filter(({ op }) => op.toLowerCase() === operation).map(({ value }) => value));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
