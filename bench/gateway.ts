/**
 * The gateway beside a bare proxy on undici, nginx, and the pair of fastify plugins.
 *
 * All run at once in front of the same upstream, an nginx; wrk asks one after the other, in turn, and the medians of
 * the rounds are compared. On a machine with two cores wrk and the upstream take their part of the second one.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, rmdir, writeFile } from 'node:fs/promises';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { TestRedis } from '@gantry/limiter/redis/testing/test-redis.ts';

import { buildLatencyClient, compareLatency } from './gateway-latency.ts';
import { startNginx } from './gateway-peers/nginx.ts';
import { freePorts, startNode } from './gateway-peers/processes.ts';
import { median } from './measure.ts';

const ROUNDS = 7;
const SECONDS = 2;
const CONNECTIONS = 32;
const CALLERS = 1000;
/** Limits that are checked but never reached. */
const ENOUGH = 1_000_000_000;
const SHARE_OF_CORE = 0.25;

const root = dirname(import.meta.dirname);

/** `pid`: of a gateway with one process. */
type Contender = Readonly<{ name: string; port: number; status: number; budgets: readonly Budget[]; pid?: number }>;
type Budget = Readonly<{ against: string; atLeast: number }>;

const BARE = 'bare proxy on undici';
const PAIR = '@fastify/http-proxy with @fastify/rate-limit';

/**
 * `only`: part of the names to run beside the bare proxy; `latency`: only what is added at half load, with a part of the
 * names for one of the two; `workers`: how several processes on one port scale.
 */
export async function main(only?: string, timed = ''): Promise<void> {
  if (only === 'workers') return await compareWorkers();
  await using undo = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'gantry-bench-'));
  undo.defer(async () => await rm(folder, { recursive: true, force: true }));
  const all = await startAll(folder, undo);
  const chosen = all.filter(({ name }) => {
    if (only === 'latency') return TIMED.some((one) => one === name && one.includes(timed));
    return only === undefined || name === BARE || name.includes(only);
  });
  const script = join(folder, 'callers.lua');
  await writeFile(script, CALLER_SCRIPT);
  console.log(
    `${CONNECTIONS} connections, ${CALLERS} callers with a token each, answers of 1 KB, ${ROUNDS} rounds of` +
      ` ${SECONDS} s in turn, medians; ${availableParallelism()} cores for wrk, upstream and proxy together\n`,
  );
  const figures = new Map(chosen.map(({ name }): [string, number[]] => [name, []]));
  for (let round = -1; round < ROUNDS; round += 1) {
    for (const contender of chosen) {
      const perSecond = await load(contender, script);
      if (round >= 0) figures.get(contender.name)!.push(perSecond);
    }
  }
  const medians = new Map([...figures].map(([name, values]) => [name, median(values)]));
  if (only !== 'latency') report(chosen, medians);
  if (only === undefined || only === 'latency') {
    await reportLatency(await buildLatencyClient(folder), all, medians);
  }
}

const MEMORY = 'gateway, memory';
const REDIS = 'gateway, Redis';
const NGINX = 'nginx with limit_req and limit_conn';
const UPSTREAM = 'the upstream itself';
const TIMED = [MEMORY, REDIS];

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
    const timed = [{ ...named(name), atMostMs }, named(NGINX), named(UPSTREAM)];
    await compareLatency(client, `half of ${name}`, most / 2, CALLERS, timed);
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

async function startAll(folder: string, undo: AsyncDisposableStack): Promise<Contender[]> {
  const [upstream = 0, nginx = 0, bare = 0, pair = 0, ...ports] = await freePorts(10);
  const redis = undo.use(await TestRedis.start());
  undo.use(await startNginx(folder, upstream, nginx));
  const origin = `http://127.0.0.1:${upstream}`;
  const peer = async (file: string, port: number): Promise<void> => {
    await startNode(undo, [join(import.meta.dirname, 'gateway-peers', file), String(port), origin], port);
  };
  await peer('bare-proxy.ts', bare);
  await peer('fastify-proxy.ts', pair);
  const gateway = async (name: string, port: number, settings: object): Promise<number> => {
    const file = join(folder, `${name}.json`);
    const all = { ...gatewaySettings(origin), listen: `127.0.0.1:${port}`, ...settings };
    await writeFile(file, JSON.stringify({ ...all, admin: { socket: '' } }));
    return await startNode(undo, [join(root, 'gateway', 'main.ts'), '--config', file], port);
  };
  const [memory = 0, sqlite = 0, shared = 0, refusing = 0, refusingShared = 0, workers = 0] = ports;
  const inRedis = { kind: 'redis', url: redis.url, timeoutMs: 5000 };
  const nothing = { limits: { user: 0 } };
  const memoryPid = await gateway('memory', memory, {});
  await gateway('sqlite', sqlite, { store: { kind: 'sqlite', path: join(folder, 'limits.db') } });
  const redisPid = await gateway('redis', shared, { store: inRedis });
  await gateway('refusing', refusing, nothing);
  await gateway('refusing-redis', refusingShared, { ...nothing, store: { ...inRedis, prefix: 'nothing:' } });
  await gateway('workers', workers, { workers: 2, store: { ...inRedis, prefix: 'workers:' } });
  const toBare = (atLeast: number): Budget => ({ against: BARE, atLeast });
  return [
    { name: BARE, port: bare, status: 200, budgets: [] },
    {
      name: MEMORY,
      port: memory,
      status: 200,
      budgets: [toBare(0.8), { against: PAIR, atLeast: 1.5 }],
      pid: memoryPid,
    },
    { name: 'gateway, SQLite', port: sqlite, status: 200, budgets: [toBare(0.75)] },
    { name: REDIS, port: shared, status: 200, budgets: [toBare(0.6)], pid: redisPid },
    { name: 'gateway, refusing, memory', port: refusing, status: 403, budgets: [toBare(1.2)] },
    { name: 'gateway, refusing, Redis', port: refusingShared, status: 403, budgets: [toBare(1.2)] },
    { name: 'gateway, Redis, 2 workers', port: workers, status: 200, budgets: [] },
    { name: PAIR, port: pair, status: 200, budgets: [] },
    { name: NGINX, port: nginx, status: 200, budgets: [] },
    { name: UPSTREAM, port: upstream, status: 200, budgets: [] },
  ];
}

/**
 * One to three processes on one port, each with a part of a core of its own: so many cores there are not, and this shows
 * all the same whether another core would be of use.
 */
async function compareWorkers(): Promise<void> {
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
  const [upstream = 0, nginx = 0, port = 0] = await freePorts(3);
  undo.use(await startNginx(folder, upstream, nginx));
  const store = kind === 'redis' ? { kind, url: undo.use(await TestRedis.start()).url, timeoutMs: 5000 } : { kind };
  const settings = { ...gatewaySettings(`http://127.0.0.1:${upstream}`), listen: `127.0.0.1:${port}`, workers, store };
  await writeFile(join(folder, 'gateway.json'), JSON.stringify({ ...settings, admin: { socket: '' } }));
  const script = join(folder, 'callers.lua');
  await writeFile(script, CALLER_SCRIPT);
  const file = join(folder, 'gateway.json');
  const pid = await startNode(undo, [join(root, 'gateway', 'main.ts'), '--config', file], port);
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8');
  for (const each of [pid, ...children.split(' ').filter(Boolean)]) undo.use(await shareOfCore(String(each)));
  const rounds: number[] = [];
  for (let round = -1; round < ROUNDS; round += 1) {
    const perSecond = await load({ name: `${workers} workers`, port, status: 200, budgets: [] }, script);
    if (round >= 0) rounds.push(perSecond);
  }
  return median(rounds);
}

/** Gives a process a part of one core, whatever else is idle. Cgroup v1 or v2. */
async function shareOfCore(pid: string): Promise<AsyncDisposable> {
  const unified = existsSync('/sys/fs/cgroup/cgroup.controllers');
  const parent = unified ? '/sys/fs/cgroup' : '/sys/fs/cgroup/cpu';
  const group = join(parent, `gantry-bench-${pid}`);
  await mkdir(group);
  const [period, quota] = [20_000, Math.round(20_000 * SHARE_OF_CORE)];
  if (unified) await writeFile(join(group, 'cpu.max'), `${quota} ${period}`);
  else {
    await writeFile(join(group, 'cpu.cfs_period_us'), String(period));
    await writeFile(join(group, 'cpu.cfs_quota_us'), String(quota));
  }
  await writeFile(join(group, 'cgroup.procs'), pid);
  return {
    [Symbol.asyncDispose]: async () => {
      // The process may have ended already.
      if (existsSync(`/proc/${pid}`)) await writeFile(join(parent, 'cgroup.procs'), pid);
      await rmdir(group);
    },
  };
}

function gatewaySettings(upstream: string): object {
  const ids = Array.from({ length: CALLERS }, (_, n) => String(n));
  const quota = { limit: ENOUGH };
  return {
    upstream,
    limits: { user: ENOUGH },
    secondary: {
      restPoints: quota,
      contentPerMinute: quota,
      contentPerHour: quota,
      concurrent: { limit: 60_000 },
      cpu: { totalSeconds: 2000, graphqlSeconds: 2000 },
    },
    identities: {
      users: Object.fromEntries(ids.map((id) => [id, { orgs: [] }])),
      tokens: ids.map((id) => ({ kind: 'personal', user: id, sha256: hashOf(`token-of-${id}`) })),
    },
    log: { level: 'warn' },
  };
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Requests that are made before the first one is sent. */
const CALLER_SCRIPT = `
local requests, at = {}, 0
for n = 0, ${CALLERS - 1} do
  local headers = { Authorization = 'Bearer token-of-' .. n, Accept = 'application/vnd.platform+json' }
  requests[n] = function() return wrk.format('GET', '/repos/gantry/r' .. (n % 50), headers) end
end
init = function() for n = 0, ${CALLERS - 1} do requests[n] = requests[n]() end end
request = function()
  at = (at + 7) % ${CALLERS}
  return requests[at]
end
`;

/** Requests per second. Another status than the expected one in any answer is an error. */
async function load({ name, port, status }: Contender, script: string): Promise<number> {
  const args = ['-t1', `-c${CONNECTIONS}`, `-d${SECONDS}s`, '-s', script, `http://127.0.0.1:${port}`];
  const { stdout } = await promisify(execFile)('wrk', args);
  const perSecond = Number(/^Requests\/sec:\s+([\d.]+)/m.exec(stdout)?.[1]);
  const total = Number(/^\s+(\d+) requests in/m.exec(stdout)?.[1]);
  const others = Number(/^\s+Non-2xx or 3xx responses: (\d+)/m.exec(stdout)?.[1] ?? 0);
  if (!(perSecond > 0) || others !== (status === 200 ? 0 : total) || stdout.includes('Socket errors')) {
    throw new Error(`${name} gave an unexpected answer:\n${stdout}`);
  }
  return perSecond;
}
