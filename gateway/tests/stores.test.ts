import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { eventually } from '@gantry/testing/eventually.ts';
import { type Answer, type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';
import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

import { askCaller } from '../admin/client.ts';

/** Time whose counts a killed gateway may lose, as the documentation says. */
const FLUSH_MS = 200;

test('SQLite: a second gateway on the same file is refused, until the first has ended', async () => {
  await using upstream = await TestUpstream.start();
  const first = await TestGateway.start({
    upstream: upstream.url,
    store: { kind: 'sqlite', path: '{folder}/limits.db' },
  });
  await using _undo = first;
  const settings: Settings = {
    upstream: upstream.url,
    store: { kind: 'sqlite', path: join(first.folder, 'limits.db') },
  };

  const second = await TestGateway.start(settings).then(
    () => 'started',
    (error: unknown) => String(error),
  );
  const workers = await TestGateway.start({ ...settings, workers: 2 }).then(
    () => 'started',
    (error: unknown) => String(error),
  );
  await kill(first);
  await using third = await TestGateway.start(settings);

  assert.match(
    second,
    /gantry gateway: .*limits\.db is used by another process: gateways that share counts need Redis/,
  );
  assert.match(workers, /is used by another process/);
  assert.equal((await third.request('/user')).status, 200);
});

async function settledUnderWay(gateway: TestGateway, count: number): Promise<void> {
  await eventually(
    `${count} requests are under way`,
    async () => (await askCaller(gateway.adminSocket, 'ip:127.0.0.1')).underWay === count,
  );
}

async function kill(gateway: TestGateway): Promise<void> {
  gateway.signal('SIGKILL');
  await gateway.exited;
}

async function askTimes(count: number, gateways: readonly TestGateway[], path = '/user'): Promise<Answer[]> {
  return await Promise.all(
    Array.from({ length: count }, async (_, n) => await gateways[n % gateways.length]!.request(path)),
  );
}

function statuses(answers: readonly Answer[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

/** How many script calls a Redis has served: only gateways make them. */
async function scriptCalls(redis: TestRedis): Promise<number> {
  const child = spawn('redis-cli', ['-s', redis.url, 'info', 'commandstats'], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (data: Buffer) => (text += data.toString()));
  await once(child, 'close');
  const calls = [...text.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].map((match) => Number(match[1]));
  return calls.reduce((sum, count) => sum + count, 0);
}

test('SQLite: counts survive SIGKILL up to the last flush, and requests under way do not', async () => {
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/held');
  const folder = await mkdtemp(join(tmpdir(), 'gantry-counts-'));
  const settings: Settings = {
    upstream: upstream.url,
    limits: { anonymous: 1000 },
    secondary: { content: [{ route: 'POST /things' }] },
    store: { kind: 'sqlite', path: join(folder, 'limits.db') },
  };
  const first = await TestGateway.start(settings);
  await askTimes(40, [first]);
  await first.request('/things', { method: 'POST' });
  const unanswered = ['/held', '/held'].map(async (path) => await first.request(path).catch(() => undefined));
  await upstream.until(() => held.waiting() === 2);
  const before = await askCaller(first.adminSocket, 'ip:127.0.0.1');
  await sleep(10 * FLUSH_MS);

  await kill(first);
  await using second = await TestGateway.start(settings);
  const afterwards = await askCaller(second.adminSocket, 'ip:127.0.0.1');
  const answer = await second.request('/user');

  await Promise.all(unanswered);
  await first[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
  assert.equal(before.underWay, 2);
  assert.equal(afterwards.underWay, 0);
  const counted = (state: typeof before): unknown =>
    state.windows.filter(({ name }) => name !== 'cpu').toSorted((a, b) => a.name.localeCompare(b.name));
  assert.deepEqual(counted(afterwards), counted(before));
  assert.deepEqual([answer.status, answer.headers['x-ratelimit-used']], [200, '44']);
});

test('Redis: the headers of two gateways agree, and together they admit exactly the limit', async () => {
  await using upstream = await TestUpstream.start();
  await using redis = await TestRedis.start();
  const settings: Settings = {
    upstream: upstream.url,
    limits: { anonymous: 50 },
    secondary: { concurrent: { limit: 1000 } },
    store: { kind: 'redis', url: redis.url, timeoutMs: 5000 },
  };
  await using one = await TestGateway.start(settings);
  await using two = await TestGateway.start(settings);

  const first = await one.request('/user');
  const second = await two.request('/user');
  const many = await askTimes(200, [one, two]);
  const [statusOfOne, statusOfTwo] = [await one.rateLimit(), await two.rateLimit()];

  assert.deepEqual([first.headers['x-ratelimit-used'], second.headers['x-ratelimit-used']], ['1', '2']);
  assert.deepEqual(statuses(many), { 200: 48, 403: 152 });
  assert.equal(upstream.count('/user'), 50);
  const resets = new Set([first, second, ...many].map(({ headers }) => headers['x-ratelimit-reset']));
  assert.equal(resets.size, 1);
  const used = many.filter(({ status }) => status === 200).map(({ headers }) => Number(headers['x-ratelimit-used']));
  assert.deepEqual(
    used.toSorted((a, b) => a - b),
    Array.from({ length: 48 }, (_, n) => n + 3),
  );
  assert.deepEqual(statusOfOne, statusOfTwo);
});

test('Redis: four gateways with ten times the load admit exactly the limit', async () => {
  await using upstream = await TestUpstream.start();
  await using redis = await TestRedis.start();
  const settings: Settings = {
    upstream: upstream.url,
    limits: { anonymous: 100 },
    secondary: { concurrent: { limit: 5000 }, restPoints: { limit: 100_000 } },
    store: { kind: 'redis', url: redis.url, timeoutMs: 10_000 },
    log: { level: 'error' },
  };
  const gateways = await Promise.all(
    Array.from({ length: 4 }, async () => await TestGateway.start({ ...settings, log: { level: 'info' } })),
  );

  const answers = await askTimes(1000, gateways);

  for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
  assert.deepEqual(statuses(answers), { 200: 100, 403: 900 });
  assert.equal(upstream.count('/user'), 100);
});

test('Redis: a gateway that ends gives its places back', async () => {
  await using upstream = await TestUpstream.start();
  await using redis = await TestRedis.start();
  const settings: Settings = { upstream: upstream.url, store: { kind: 'redis', url: redis.url } };
  await using other = await TestGateway.start(settings);
  {
    await using ending = await TestGateway.start(settings);
    await askTimes(20, [ending]);
  }

  await settledUnderWay(other, 0);
});

test('Redis: while somebody is refused until a reset, Redis is not asked', async () => {
  await using upstream = await TestUpstream.start();
  await using redis = await TestRedis.start();
  await using gateway = await TestGateway.start({
    upstream: upstream.url,
    limits: { anonymous: 5 },
    store: { kind: 'redis', url: redis.url },
  });
  await askTimes(5, [gateway]);
  await settledUnderWay(gateway, 0);
  await gateway.request('/user');
  const before = await scriptCalls(redis);

  const refused = await askTimes(500, [gateway]);

  assert.deepEqual(statuses(refused), { 403: 500 });
  assert.ok((await scriptCalls(redis)) - before <= 2, 'only renewals may be sent');
  assert.ok(refused.every(({ headers }) => headers['x-ratelimit-used'] === '5'));
});
