import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

import { median, type Row } from './measure.ts';
import { childrenOf } from './memory.ts';
import type { Subject } from './subject.ts';

const COUNT = 50;
const SECONDS = 5;
/** Enough that a collection of the heap, after the work of the benches before, falls into the fewer of them. */
const ROUNDS = 7;
const NS_PER_MS = 1e6;

export const WATCHERS = `${COUNT} watchers of stats, CPU of the daemon in a second`;

type Side = Readonly<{ subject: Subject; pid: number }>;

/** The CPU time of a daemon, dockerd with its containerd, while clients stream the statistics of one container. */
export async function watchersCpu(ours: Side, theirs: Side): Promise<Row> {
  const figures = { ours: [] as number[], theirs: [] as number[] };
  for (let round = 0; round < ROUNDS; round += 1) {
    figures.ours.push(await cpuPerSecond(ours));
    figures.theirs.push(await cpuPerSecond(theirs));
  }
  const [mine, other] = [median(figures.ours), median(figures.theirs)];
  return { name: WATCHERS, unit: 'ms', ours: mine, theirs: other, ratio: mine / other, atMost: 1 / 3 };
}

async function cpuPerSecond({ subject, pid }: Side): Promise<number> {
  using _watchers = await subject.watching(COUNT);
  const before = cpuMs(pid);
  await setTimeout(SECONDS * 1000);
  return (cpuMs(pid) - before) / SECONDS;
}

function cpuMs(pid: number): number {
  return [pid, ...childrenOf(pid)].reduce((sum, each) => sum + cpuNs(each), 0) / NS_PER_MS;
}

/** Processor time of all threads; a thread that ends meanwhile is not counted. */
function cpuNs(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.reduce(
    (sum, thread) => sum + Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
    0,
  );
}
