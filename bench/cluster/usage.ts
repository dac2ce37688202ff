import { readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const TICKS_A_SECOND = 100;

/** A process by its id, as messages name it. */
export type Watched = Readonly<{ name: string; pids: () => readonly number[] }>;

/** Usage of processes: processor time between two looks, memory now; of this one also the longest standstill of its event loop. */
export class Usage {
  readonly #watched: readonly Watched[];
  readonly #stalls = monitorEventLoopDelay({ resolution: 10 });
  #before = new Map<number, number>();

  constructor(watched: readonly Watched[]) {
    this.#watched = watched;
    this.#stalls.enable();
    this.begin();
  }

  begin(): void {
    this.#stalls.reset();
    this.#before = new Map(this.#pids.map((pid) => [pid, cpuSeconds(pid)]));
  }

  /** Since `begin`. The live memory is what is left after a collection, which the times must not have in them. */
  tell(): string {
    const longest = this.#stalls.max / 1e6;
    const seconds = this.#watched.map(({ name, pids }) => {
      const spent = pids().reduce((sum, pid) => sum + cpuSeconds(pid) - (this.#before.get(pid) ?? 0), 0);
      return `${name} ${spent.toFixed(0)}`;
    });
    const memory = this.#watched.map(({ name, pids }) => `${name} ${pids().map(rssOf).map(megabytes).join(', ')}`);
    return [
      `memory in MB: ${memory.join('; ')}; live in the leader ${megabytes(liveBytes())}`,
      `seconds of processors: ${seconds.join(', ')}; longest stall of the leader ${longest.toFixed(0)} ms`,
    ].join('\n  ');
  }

  get #pids(): number[] {
    return this.#watched.flatMap(({ pids }) => pids());
  }
}

/** The resident memory of a process, in bytes. */
export function rssOf(pid: number): number {
  const [, kilobytes = '0'] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) * 1024;
}

/** User and system time of a process so far. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
}

function liveBytes(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}

function megabytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(0);
}
