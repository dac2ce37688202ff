/**
 * What a proxy adds to the time of an answer while it has half of what it can do: requests at a steady rate, whose 99th
 * percentile is compared with that of the upstream itself at the same rate, in turn.
 *
 * The requests come from a small program in C: one in JavaScript would pause for its own collections, and takes more of
 * the two cores than wrk and the upstream together.
 *
 * Beside each figure stands how long the proxy itself has waited for a core: on a busy machine that is what is measured,
 * and a budget is missed only below a hundredth of the time. `chrt -f` makes it worse: of equal priorities none gives way to
 * another, so that requests wait for whole turns of the others.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { median } from './measure.ts';

const ROUNDS = 5;
const WARM_SECONDS = 1;
const SECONDS = 2;
const CONNECTIONS = 32;
/** Milliseconds in a second. */
const MOST_WAITING = 10;

/** `pid`: of the proxy, where its waiting for a core is to be known. */
export type Timed = Readonly<{ name: string; port: number; pid?: number; atMostMs?: number }>;

/** Milliseconds from the moment at which each request was due. */
type Latencies = Readonly<{ p50: number; p99: number }>;

/** Of all rounds; `waited` in milliseconds of a second. */
type Figures = { p50: number[]; p99: number[]; waited: number[] };

const run = promisify(execFile);

/** Compiles the client. Returns its path. */
export async function buildLatencyClient(folder: string): Promise<string> {
  const program = join(folder, 'gateway-latency-client');
  await run('cc', ['-O2', '-o', program, join(import.meta.dirname, 'gateway-latency-client.c')]);
  return program;
}

/** `rate`: requests in a second, of so many callers in turn. The last one of `timed` is the upstream itself. */
export async function compareLatency(
  client: string,
  what: string,
  rate: number,
  callers: number,
  timed: readonly Timed[],
): Promise<void> {
  const found = new Map(timed.map(({ name }): [string, Figures] => [name, { p50: [], p99: [], waited: [] }]));
  for (let round = -1; round < ROUNDS; round += 1) {
    const ofRound = new Map<string, Latencies>();
    for (const { name, port, pid } of timed) {
      const before = await waitedMs(pid);
      ofRound.set(name, await latencies(client, port, rate, callers));
      if (round >= 0) found.get(name)!.waited.push(((await waitedMs(pid)) - before) / (WARM_SECONDS + SECONDS));
    }
    const base = ofRound.get(timed.at(-1)!.name)!;
    if (round < 0) continue;
    for (const [name, { p50, p99 }] of ofRound) {
      const figures = found.get(name)!;
      figures.p50.push(p50 - base.p50);
      figures.p99.push(p99 - base.p99);
    }
  }
  console.log(`\nAdded to the time of an answer at ${Math.round(rate).toLocaleString('en')} requests/s (${what})\n`);
  console.log(
    '| | median, ms | 99th percentile, ms | rounds | waited for a core, ms/s | budget |\n|---|---|---|---|---|---|',
  );
  for (const { name, atMostMs } of timed.slice(0, -1)) {
    const { p50, p99, waited } = found.get(name)!;
    const mine = median(p99);
    const busy = median(waited) > MOST_WAITING;
    const verdict = mine <= (atMostMs ?? Infinity) ? 'met' : busy ? 'not judged: the machine is busy' : 'NOT MET';
    const judged = atMostMs === undefined ? '' : `≤ ${atMostMs} ${verdict}`;
    const rounds = p99.map((value) => value.toFixed(2)).join(' ');
    console.log(
      `| ${name} | ${median(p50).toFixed(2)} | ${mine.toFixed(2)} | ${rounds} | ${median(waited).toFixed(1)} | ${judged} |`,
    );
  }
}

/** For how long the main thread of a process was ready to run and had no core. */
async function waitedMs(pid: number | undefined): Promise<number> {
  if (pid === undefined) return 0;
  const [, waitedNs = '0'] = (await readFile(`/proc/${pid}/schedstat`, 'utf8')).split(' ');
  return Number(waitedNs) / 1e6;
}

async function latencies(client: string, port: number, rate: number, callers: number): Promise<Latencies> {
  const numbers = [port, rate, WARM_SECONDS, SECONDS, CONNECTIONS, callers];
  const { stdout } = await run(client, numbers.map(String));
  return JSON.parse(stdout) as Latencies;
}
