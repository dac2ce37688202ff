/**
 * Measures the time that a proxy adds to an answer at half of its highest rate: requests at a steady rate, whose 99th
 * percentile is compared with that of the upstream itself at the same rate, in turn.
 *
 * The proxy has one core, the client and the upstream share another: where they take each other's core, it is the
 * scheduler that is measured. The client is a small program in C, since one in JavaScript would pause for its own
 * collections. Rounds are short, and the ones in which proxy and client waited least for their cores are judged, whatever
 * came of them, for nginx as for the gateway. Waiting only adds: a figure within the budget is met even on a busy machine,
 * and one above it says nothing there.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { median } from '../measure.ts';
import { outputOf, pin } from './processes.ts';

const QUIET_ROUNDS = 9;
const MAX_ROUNDS = 24;
const WARM_SECONDS = 0.25;
const SECONDS = 0.75;
const CONNECTIONS = 32;
/** Milliseconds in a second that each may have waited for its core in a quiet round. The client shares its own. */
const MAX_WAITING = { proxy: 10, client: 50 };
const CORE_OF_PROXIES = 0;
const CORE_OF_OTHERS = 1;

/** `pid`: of the process that answers on the port. */
export type Timed = Readonly<{ name: string; port: number; pid: number; atMostMs?: number }>;

/** Milliseconds from the moment at which each request was due. `waited`: of a second, for a core. */
type Turn = Readonly<{ p50: number; p99: number; waited: { proxy: number; client: number } }>;

/** `rate`: requests in a second, of so many callers in turn. */
export type Load = Readonly<{ what: string; rate: number; callers: number }>;

/** Compiles the client. Returns its path. */
export async function buildLatencyClient(folder: string): Promise<string> {
  const program = join(folder, 'latency-client');
  await outputOf('cc', ['-O2', '-o', program, join(import.meta.dirname, 'latency-client.c')]);
  return program;
}

/** Runs `proxies` in turn with the upstream itself, and prints a table. */
export async function compareLatency(
  client: string,
  load: Load,
  proxies: readonly Timed[],
  upstream: Timed,
): Promise<void> {
  for (const { pid } of proxies) await pin(pid, CORE_OF_PROXIES);
  await pin(upstream.pid, CORE_OF_OTHERS);
  const direct: Turn[] = [];
  const turns = new Map(proxies.map(({ name }): [string, Turn[]] => [name, []]));
  const isEnough = (): boolean => turns.values().every((all) => all.filter(isQuiet).length >= QUIET_ROUNDS);
  for (let round = -1; round < MAX_ROUNDS && !isEnough(); round += 1) {
    const base = await turn(client, load, upstream);
    if (round >= 0) direct.push(base);
    for (const proxy of proxies) {
      const taken = await turn(client, load, proxy);
      if (round >= 0) turns.get(proxy.name)!.push(taken);
    }
  }
  report(load, proxies, turns, direct);
}

function isQuiet({ waited }: Turn): boolean {
  return waited.proxy <= MAX_WAITING.proxy && waited.client <= MAX_WAITING.client;
}

function report(
  { what, rate }: Load,
  proxies: readonly Timed[],
  turns: ReadonlyMap<string, readonly Turn[]>,
  direct: readonly Turn[],
): void {
  const per = Math.round(rate).toLocaleString('en');
  console.log(`\nAdded to the time of an answer at ${per} requests/s (${what}), ${direct.length} rounds\n`);
  console.log('| | median, ms | 99th percentile, ms | of the quietest rounds | waited for a core, ms/s | budget |');
  console.log('|---|---|---|---|---|---|');
  const least = { p50: Math.min(...direct.map(({ p50 }) => p50)), p99: Math.min(...direct.map(({ p99 }) => p99)) };
  for (const { name, atMostMs } of proxies) {
    const judged = turns
      .get(name)!
      .toSorted((one, other) => waiting(one) - waiting(other))
      .slice(0, QUIET_ROUNDS);
    const p99s = judged.map((one) => one.p99 - least.p99);
    const p99 = median(p99s);
    const waited = (['proxy', 'client'] as const).map((who) => median(judged.map((one) => one.waited[who])).toFixed(0));
    const busy = judged.every(isQuiet) ? 'NOT MET' : 'not judged: the machine is busy';
    const verdict = atMostMs === undefined ? '' : `≤ ${atMostMs} ${p99 <= atMostMs ? 'met' : busy}`;
    const p50 = median(judged.map((one) => one.p50 - least.p50));
    const each = p99s.map((value) => value.toFixed(2)).join(' ');
    console.log(
      `| ${name} | ${p50.toFixed(2)} | ${p99.toFixed(2)} | ${each} | ${waited.join(', client ')} | ${verdict} |`,
    );
  }
}

function waiting({ waited }: Turn): number {
  return waited.proxy + waited.client;
}

async function turn(client: string, { rate, callers }: Load, { port, pid }: Timed): Promise<Turn> {
  const before = await waitedMs(pid);
  const numbers = [port, rate, WARM_SECONDS, SECONDS, CONNECTIONS, callers];
  const stdout = await outputOf('taskset', ['-c', String(CORE_OF_OTHERS), client, ...numbers.map(String)]);
  const told = JSON.parse(stdout) as { p50: number; p99: number; waited: number };
  const seconds = WARM_SECONDS + SECONDS;
  const proxy = ((await waitedMs(pid)) - before) / seconds;
  return { p50: told.p50, p99: told.p99, waited: { proxy, client: told.waited / seconds } };
}

/** For how long the main thread of a process was ready to run and had no core. */
async function waitedMs(pid: number): Promise<number> {
  const [, waitedNs = '0'] = (await readFile(`/proc/${pid}/schedstat`, 'utf8')).split(' ');
  return Number(waitedNs) / 1e6;
}
