import type { Engine } from '../../engine.ts';
import { readCpuTime } from '../../host/cpu-time.ts';
import { Slices } from '../../lib/concurrency/slices.ts';
import { isAlive } from '../state.ts';
import type { ContainerUsage, UsageLine, UsageRecord } from './schema.ts';
import { presentUsage } from './usage.ts';

type Needs = Pick<Engine, 'background' | 'clock' | 'containers' | 'samplers'>;
type Counter = Exclude<keyof ContainerUsage, 'Id'>;

const RECORD_INTERVAL_SECONDS = 30;
/** An hour. */
const READINGS = 120;
/** 8 kB each; further ones are not recorded. */
const MAX_CONTAINERS = 2000;
const COUNTERS: readonly Counter[] = [
  'CPU',
  'Memory',
  'MemoryLimit',
  'NetworkReceived',
  'NetworkSent',
  'BlockRead',
  'BlockWritten',
  'PIDs',
];

/** The moment of a reading, shared by all containers. */
type Moment = Readonly<{ turn: number; at: Temporal.Instant; totalNs: number; online: number }>;
/** The readings of one container, one row of counters for each turn; `turns` tells which of the last hour are there. */
type Ring = Readonly<{ turns: Float64Array; values: Float64Array }>;

/** The usage of running containers of the last hour, in memory; recorded while somebody may look at it. */
export class UsageHistory {
  readonly #needs: Needs;
  readonly #moments: Moment[] = [];
  readonly #rings = new Map<string, Ring>();
  #users = 0;
  #recording: AbortController | undefined;

  constructor(needs: Needs) {
    this.#needs = needs;
  }

  /** Records until the results of all calls are disposed of; what was recorded stays. */
  record(): Disposable {
    this.#users += 1;
    if (this.#users === 1) this.#start();
    return {
      [Symbol.dispose]: () => {
        this.#users -= 1;
        if (this.#users === 0) this.#recording?.abort();
      },
    };
  }

  /** The stored readings of a container, the oldest first. */
  of(id: string): UsageRecord {
    const ring = this.#rings.get(id);
    const known = ring === undefined ? [] : this.#moments.filter(({ turn }) => ring.turns[turn % READINGS] === turn);
    return { Interval: RECORD_INTERVAL_SECONDS, Lines: known.map((moment) => lineOf(id, moment, ring!)) };
  }

  #start(): void {
    const { background, clock } = this.#needs;
    const recording = new AbortController();
    this.#recording = recording;
    let timer: Disposable | undefined;
    const turn = async (): Promise<void> => {
      timer = clock.after(RECORD_INTERVAL_SECONDS * 1000, () => void background.run('record usage', {}, turn));
      await this.#read(recording.signal);
    };
    recording.signal.addEventListener('abort', () => timer?.[Symbol.dispose](), { once: true });
    background.run('record usage', {}, turn);
  }

  /** One reading of all running containers, in slices. */
  async #read(signal: AbortSignal): Promise<void> {
    const { clock, containers, samplers } = this.#needs;
    const slices = new Slices();
    const moment = { turn: (this.#moments.at(-1)?.turn ?? 0) + 1, at: clock.now(), ...readCpuTime() };
    this.#moments.push(moment);
    const hourAgo = moment.at.subtract({ seconds: READINGS * RECORD_INTERVAL_SECONDS });
    while (Temporal.Instant.compare(this.#moments[0]!.at, hourAgo) <= 0) this.#moments.shift();
    for (const { id, state } of containers.all()) {
      const usage = isAlive(state) ? samplers.one(id)?.usage : undefined;
      const ring = usage === undefined ? undefined : this.#ringOf(id);
      if (usage !== undefined && ring !== undefined) write(ring, moment.turn, presentUsage(id, usage));
      if (slices.isOver) await slices.pause();
      if (signal.aborted) return;
    }
    this.#forgetOld(moment.turn);
  }

  #ringOf(id: string): Ring | undefined {
    const known = this.#rings.get(id);
    if (known !== undefined || this.#rings.size >= MAX_CONTAINERS) return known;
    const made = { turns: new Float64Array(READINGS), values: new Float64Array(READINGS * COUNTERS.length) };
    this.#rings.set(id, made);
    return made;
  }

  /** Drops removed containers, and those that have not run for an hour. */
  #forgetOld(turn: number): void {
    for (const [id, { turns }] of this.#rings) {
      const isRecent = turns.some((one) => one > turn - READINGS);
      if (!isRecent || this.#needs.containers.get(id) === undefined) this.#rings.delete(id);
    }
  }
}

function write({ turns, values }: Ring, turn: number, usage: ContainerUsage): void {
  const row = turn % READINGS;
  turns[row] = turn;
  for (const [column, name] of COUNTERS.entries()) values[row * COUNTERS.length + column] = usage[name];
}

function lineOf(Id: string, { turn, at, totalNs, online }: Moment, { values }: Ring): UsageLine {
  const first = (turn % READINGS) * COUNTERS.length;
  const counters = COUNTERS.map((name, column) => [name, values[first + column]!] as const);
  const usage = { Id, ...(Object.fromEntries(counters) as Record<Counter, number>) };
  return { Read: at.toString(), SystemCPU: totalNs, CPUs: online, Containers: [usage] };
}
