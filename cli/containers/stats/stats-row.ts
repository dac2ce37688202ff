import type { Stats } from '@gantry/client/containers.ts';

import type { Row } from '../../output/format.ts';
import { memoryText, shortId, sizeText } from '../../output/human.ts';

/** The figures of one container; undefined before the first sample, and for a stopped container. */
export type Figures = {
  readonly cpuPercent: number;
  readonly memoryBytes: number;
  readonly memoryLimitBytes: number;
  readonly received: number;
  readonly sent: number;
  readonly read: number;
  readonly written: number;
  readonly processes: number;
};

/** The container's name as given by the user, or else by the engine. */
export type Watched = { readonly ref: string; id: string; name: string; figures: Figures | undefined };

export const TITLES = {
  Container: 'CONTAINER',
  ID: 'CONTAINER ID',
  Name: 'NAME',
  CPUPerc: 'CPU %',
  MemUsage: 'MEM USAGE / LIMIT',
  MemPerc: 'MEM %',
  NetIO: 'NET I/O',
  BlockIO: 'BLOCK I/O',
  PIDs: 'PIDS',
};
export const COLUMNS = ['ID', 'Name', 'CPUPerc', 'MemUsage', 'MemPerc', 'NetIO', 'BlockIO', 'PIDs'] as const;

const NONE = '--';

/** The figures of a sample by docker's arithmetic. */
export function figuresOf({
  cpu_stats,
  precpu_stats,
  memory_stats,
  networks,
  blkio_stats,
  pids_stats,
}: Stats): Figures | undefined {
  if (memory_stats.usage === undefined) return undefined;
  const interfaces = Object.values(networks ?? {});
  const devices = blkio_stats.io_service_bytes_recursive ?? [];
  const moved = (letter: string): number =>
    sum(devices.filter(({ op }) => op.toLowerCase().startsWith(letter)).map(({ value }) => value));
  return {
    cpuPercent: cpuPercent(cpu_stats, precpu_stats),
    memoryBytes: memory_stats.usage - cacheOf(memory_stats.usage, memory_stats.stats ?? {}),
    memoryLimitBytes: memory_stats.limit ?? 0,
    received: sum(interfaces.map(({ rx_bytes }) => rx_bytes)),
    sent: sum(interfaces.map(({ tx_bytes }) => tx_bytes)),
    read: moved('r'),
    written: moved('w'),
    processes: pids_stats.current ?? 0,
  };
}

export function rowOf({ ref, id, name, figures }: Watched, { whole }: { whole: boolean }): Row {
  const names = { Container: ref, ID: whole ? id : shortId(id), Name: name };
  if (figures === undefined) {
    return {
      ...names,
      CPUPerc: NONE,
      MemUsage: `${NONE} / ${NONE}`,
      MemPerc: NONE,
      NetIO: NONE,
      BlockIO: NONE,
      PIDs: NONE,
    };
  }
  const { memoryBytes, memoryLimitBytes } = figures;
  return {
    ...names,
    CPUPerc: percent(figures.cpuPercent),
    MemUsage: `${memoryText(memoryBytes)} / ${memoryText(memoryLimitBytes)}`,
    MemPerc: percent(memoryLimitBytes === 0 ? 0 : (memoryBytes / memoryLimitBytes) * 100),
    NetIO: `${sizeText(figures.received)} / ${sizeText(figures.sent)}`,
    BlockIO: `${sizeText(figures.read)} / ${sizeText(figures.written)}`,
    PIDs: String(figures.processes),
  };
}

/** The order of the table: by name, or the largest first. */
export const ORDERS: Readonly<Record<string, (one: Watched, other: Watched) => number>> = {
  name: (one, other) => (one.name < other.name ? -1 : 1),
  cpu: largestFirst(({ cpuPercent: figure }) => figure),
  memory: largestFirst(({ memoryBytes }) => memoryBytes),
  net: largestFirst(({ received, sent }) => received + sent),
  block: largestFirst(({ read, written }) => read + written),
  pids: largestFirst(({ processes }) => processes),
};

function largestFirst(figure: (figures: Figures) => number): (one: Watched, other: Watched) => number {
  const of = ({ figures }: Watched): number => (figures === undefined ? -1 : figure(figures));
  return (one, other) => of(other) - of(one) || (one.name < other.name ? -1 : 1);
}

/** Percentage of one CPU: a container that keeps two busy has 200 %. */
function cpuPercent(now: Stats['cpu_stats'], before: Stats['cpu_stats']): number {
  const used = now.cpu_usage.total_usage - before.cpu_usage.total_usage;
  const machine = (now.system_cpu_usage ?? 0) - (before.system_cpu_usage ?? 0);
  const cpus = now.online_cpus ?? now.cpu_usage.percpu_usage?.length ?? 1;
  return machine > 0 && used > 0 ? (used / machine) * cpus * 100 : 0;
}

/** The page cache that the kernel can drop; its names in versions 1 and 2 of cgroups. */
function cacheOf(usage: number, counters: Readonly<Record<string, number>>): number {
  const cache = counters['total_inactive_file'] ?? counters['inactive_file'] ?? 0;
  return cache < usage ? cache : 0;
}

function percent(value: number): string {
  return `${value.toFixed(2)}%`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
