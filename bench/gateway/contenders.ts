import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

import { CALLERS } from './load.ts';
import { startNginxProxy, startUpstream } from './peers/nginx.ts';
import { freePorts, startNode } from './processes.ts';

/** Limits that are checked but never reached. */
const ENOUGH = 1_000_000_000;

const root = dirname(dirname(import.meta.dirname));
export const GATEWAY_PROGRAM = join(root, 'gateway', 'main.ts');

export const BARE = 'bare proxy on undici';
const ASKING = 'the same, counting each request in Redis';
export const MEMORY = 'gateway, memory';
export const REDIS = 'gateway, Redis';
export const NGINX = 'nginx with limit_req and limit_conn';
export const UPSTREAM = 'the upstream itself';
const PAIR = '@fastify/http-proxy with @fastify/rate-limit';

/** A proxy that `wrk` asks; `pid`: its one process. */
export type Contender = Readonly<{
  name: string;
  port: number;
  status: number;
  budgets: readonly Budget[];
  pid: number;
}>;
type Budget = Readonly<{ against: string; atLeast: number }>;

/** Starts all at once, in front of the same upstream. */
export async function startAll(folder: string, undo: AsyncDisposableStack): Promise<Contender[]> {
  const [upstream = 0, nginx = 0, bare = 0, asking = 0, pair = 0, ...ports] = await freePorts(11);
  const redis = undo.use(await TestRedis.start());
  const upstreamPid = await startUpstream(undo, folder, upstream);
  const nginxPid = await startNginxProxy(undo, folder, nginx, upstream);
  const origin = `http://127.0.0.1:${upstream}`;
  const peer = async (file: string, port: number, ...more: string[]): Promise<number> =>
    await startNode(undo, [join(import.meta.dirname, 'peers', file), String(port), origin, ...more], port);
  const gateway = async (name: string, port: number, settings: object): Promise<number> => {
    const file = join(folder, `${name}.json`);
    const all = { ...gatewaySettings(origin), listen: `127.0.0.1:${port}`, ...settings };
    await writeFile(file, JSON.stringify({ ...all, admin: { socket: '' } }));
    return await startNode(undo, [GATEWAY_PROGRAM, '--config', file], port);
  };
  const [memory = 0, sqlite = 0, shared = 0, refusing = 0, refusingShared = 0, workers = 0] = ports;
  const inRedis = { kind: 'redis', url: redis.url, timeoutMs: 5000 };
  const inSqlite = { store: { kind: 'sqlite', path: join(folder, 'limits.db') } };
  const nothing = { limits: { user: 0 } };
  const nothingInRedis = { ...nothing, store: { ...inRedis, prefix: 'nothing:' } };
  const twoWorkers = { workers: 2, store: { ...inRedis, prefix: 'workers:' } };
  const toBare = (atLeast: number): Budget => ({ against: BARE, atLeast });
  return [
    contender(BARE, bare, await peer('bare-proxy.ts', bare)),
    contender(ASKING, asking, await peer('bare-proxy.ts', asking, redis.url)),
    contender(MEMORY, memory, await gateway('memory', memory, {}), toBare(0.8), { against: PAIR, atLeast: 1.5 }),
    contender('gateway, SQLite', sqlite, await gateway('sqlite', sqlite, inSqlite), toBare(0.75)),
    contender(REDIS, shared, await gateway('redis', shared, { store: inRedis }), toBare(0.6)),
    contender('gateway, refusing, memory', refusing, await gateway('refusing', refusing, nothing), toBare(1.2)),
    contender(
      'gateway, refusing, Redis',
      refusingShared,
      await gateway('refusing-redis', refusingShared, nothingInRedis),
      toBare(1.2),
    ),
    contender('gateway, Redis, 2 workers', workers, await gateway('workers', workers, twoWorkers)),
    contender(PAIR, pair, await peer('fastify-proxy.ts', pair)),
    contender(NGINX, nginx, nginxPid),
    contender(UPSTREAM, upstream, upstreamPid),
  ];
}

function contender(name: string, port: number, pid: number, ...budgets: Budget[]): Contender {
  return { name, port, pid, status: name.includes('refusing') ? 403 : 200, budgets };
}

/** A gateway before this upstream, with all limits and `CALLERS` known tokens. */
export function gatewaySettings(upstream: string): object {
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
      tokens: ids.map((id) => ({ user: id, sha256: hashOf(`token-of-${id}`) })),
    },
    log: { level: 'warn' },
  };
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
