/**
 * The gateway beside a bare proxy on undici, nginx, and the pair of fastify plugins.
 *
 * All run at once in front of the same upstream, an nginx; wrk asks one after the other, in turn, and the medians of
 * the rounds are compared. On a machine with two cores wrk and the upstream take their part of the second one.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';

import { median } from '../measure.ts';
import { BARE, type Contender, MEMORY, NGINX, REDIS, startAll, UPSTREAM } from './contenders.ts';
import { buildLatencyClient, compareLatency } from './latency.ts';
import { CALLERS, CONNECTIONS, requestsPerSecond, ROUNDS, SECONDS, writeCallers } from './load.ts';
import { endingOnSignals } from './processes.ts';
import { compareWorkers } from './workers.ts';

const TIMED = [MEMORY, REDIS];

/**
 * `only`: part of the names to run beside the bare proxy; `latency`: only what is added at half load, with a part of the
 * names for one of the two; `workers`: how several processes on one port scale.
 */
export async function main(only?: string, timed = ''): Promise<void> {
  await endingOnSignals(async () => await compare(only, timed));
}

async function compare(only: string | undefined, timed: string): Promise<void> {
  if (only === 'workers') return await compareWorkers();
  await using undo = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'gantry-bench-'));
  undo.defer(async () => await rm(folder, { recursive: true, force: true }));
  const all = await startAll(folder, undo);
  const chosen = all.filter(({ name }) => {
    if (only === 'latency') return TIMED.some((one) => one === name && one.includes(timed));
    return only === undefined || name === BARE || name.includes(only);
  });
  const callers = await writeCallers(folder);
  console.log(
    `${CONNECTIONS} connections, ${CALLERS} callers with a token each, answers of 1 KB, ${ROUNDS} rounds of` +
      ` ${SECONDS} s in turn, medians; ${availableParallelism()} cores for wrk, upstream and proxy together\n`,
  );
  const figures = new Map(chosen.map(({ name }): [string, number[]] => [name, []]));
  for (let round = -1; round < ROUNDS; round += 1) {
    for (const contender of chosen) {
      const perSecond = await requestsPerSecond(contender, callers);
      if (round >= 0) figures.get(contender.name)!.push(perSecond);
    }
  }
  const medians = new Map([...figures].map(([name, values]) => [name, median(values)]));
  if (only !== 'latency') report(chosen, medians);
  if (only === undefined || only === 'latency') {
    await reportLatency(await buildLatencyClient(folder), all, medians);
  }
}

/** Each gateway at half of what it can do, and nginx at the same rate. */
async function reportLatency(
  client: string,
  all: readonly Contender[],
  medians: ReadonlyMap<string, number>,
): Promise<void> {
  const named = (name: string): Contender => all.find((one) => one.name === name)!;
  for (const [name, atMostMs] of [
    [MEMORY, 1.5],
    [REDIS, 3],
  ] as const) {
    const most = medians.get(name);
    if (most === undefined) continue;
    const load = { what: `half of ${name}`, rate: most / 2, callers: CALLERS };
    await compareLatency(client, load, [{ ...named(name), atMostMs }, named(NGINX)], named(UPSTREAM));
  }
}

function report(contenders: readonly Contender[], medians: ReadonlyMap<string, number>): void {
  const bare = medians.get(BARE) ?? Number.NaN;
  console.log(`| | requests/s | to the bare proxy | budget |\n|---|---|---|---|`);
  for (const { name, budgets } of contenders) {
    const mine = medians.get(name)!;
    const measured = budgets.filter(({ against }) => medians.has(against));
    const judged = measured.map(({ against, atLeast }) => {
      const ratio = mine / medians.get(against)!;
      const to = against === BARE ? '' : ` × ${against}: ${ratio.toFixed(2)}`;
      return `≥ ${atLeast}${to} ${ratio >= atLeast ? 'met' : 'NOT MET'}`;
    });
    console.log(
      `| ${name} | ${Math.round(mine).toLocaleString('en')} | ${(mine / bare).toFixed(2)} | ${judged.join('; ')} |`,
    );
  }
}
