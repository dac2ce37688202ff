import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

import { median } from '../measure.ts';
import { GATEWAY_PROGRAM, gatewaySettings } from './contenders.ts';
import { requestsPerSecond, ROUNDS, writeCallers } from './load.ts';
import { startUpstream } from './peers/nginx.ts';
import { freePorts, shareOfCore, startNode } from './processes.ts';

const SHARE_OF_CORE = 0.25;

/**
 * One to three processes on one port, each with a part of a core of its own: so many cores there are not, and this shows
 * all the same whether another core would be of use.
 */
export async function compareWorkers(): Promise<void> {
  console.log(`${SHARE_OF_CORE} of a core for each process, the primary one included\n`);
  console.log('| store | 1 process | 2 workers | 3 workers |\n|---|---|---|---|');
  for (const kind of ['redis', 'memory'] as const) {
    const figures: number[] = [];
    for (const workers of [1, 2, 3]) figures.push(await workersPerSecond(kind, workers));
    const [one = Number.NaN] = figures;
    const cells = figures.map((value) => `${Math.round(value).toLocaleString('en')} (${(value / one).toFixed(2)})`);
    console.log(`| ${kind} | ${cells.join(' | ')} |`);
  }
}

async function workersPerSecond(kind: 'redis' | 'memory', workers: number): Promise<number> {
  await using undo = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'gantry-bench-'));
  undo.defer(async () => await rm(folder, { recursive: true, force: true }));
  const [upstream = 0, port = 0] = await freePorts(2);
  await startUpstream(undo, folder, upstream);
  const store = kind === 'redis' ? { kind, url: undo.use(await TestRedis.start()).url, timeoutMs: 5000 } : { kind };
  const settings = { ...gatewaySettings(`http://127.0.0.1:${upstream}`), listen: `127.0.0.1:${port}`, workers, store };
  await writeFile(join(folder, 'gateway.json'), JSON.stringify({ ...settings, admin: { socket: '' } }));
  const callers = await writeCallers(folder);
  const file = join(folder, 'gateway.json');
  const pid = await startNode(undo, [GATEWAY_PROGRAM, '--config', file], port);
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  for (const each of [pid, ...children.split(' ').filter(Boolean)])
    undo.use(await shareOfCore(String(each), SHARE_OF_CORE));
  const rounds: number[] = [];
  for (let round = -1; round < ROUNDS; round += 1) {
    const perSecond = await requestsPerSecond({ name: `${workers} workers`, port, status: 200 }, callers);
    if (round >= 0) rounds.push(perSecond);
  }
  return median(rounds);
}
