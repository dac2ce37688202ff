import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { eventually } from '@gantry/testing/eventually.ts';
import { type Answer, runGatewayCommand, type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';
import { TestRedis } from '@gantry/testing/redis/test-redis.ts';
import { startSentinels } from '@gantry/testing/redis/test-topology.ts';

import { askCaller } from '../admin/client.ts';

/** Lines of the log since then, by the clock of this machine: they arrive later than answers. */
function linesSince({ log }: TestGateway, epochMs: number): string[] {
  return log.filter((line) => Number(line['time']) >= epochMs).map(({ msg }) => msg);
}

for (const onFailure of ['open', 'closed'] as const) {
  test(`Redis that stops in the middle leaves every request with an answer, and is used again (${onFailure})`, async () => {
    await using upstream = await TestUpstream.start();
    await using redis = await TestRedis.start();
    await using gateway = await TestGateway.start({
      upstream: upstream.url,
      limits: { anonymous: 10_000 },
      secondary: { concurrent: { limit: 1000 }, restPoints: { limit: 10_000 } },
      store: { kind: 'redis', url: redis.url, onFailure, timeoutMs: 5000 },
    });
    await gateway.request('/user');

    const during: Answer[] = [];
    const asking = (async () => {
      for (let round = 0; round < 10; round += 1) {
        during.push(...(await Promise.all(Array.from({ length: 20 }, async () => await gateway.request('/user')))));
      }
    })();
    await redis.kill();
    await asking;
    const away = await gateway.request('/user');
    const status = await gateway.request('/rate_limit');
    await redis.start();
    await eventually('Redis is used again', async () => {
      const { headers } = await gateway.request('/user');
      const used = Number(headers['x-ratelimit-used']);
      return used > 0 && used < 200; // an empty Redis
    });

    assert.equal(during.length, 200);
    for (const answer of [...during, away, status]) {
      assert.ok(answer.status === 200 || (onFailure === 'closed' && answer.status === 503), String(answer.status));
      assert.ok(answer.headers['x-ratelimit-limit'], 'it has the headers of the rate limit');
    }
    assert.equal(away.status, onFailure === 'open' ? 200 : 503);
    if (onFailure === 'closed') {
      assert.equal(away.headers['retry-after'], '1');
      assert.equal(typeof (JSON.parse(away.body) as { message: unknown }).message, 'string');
    }
    assert.ok(((await gateway.metrics()).get('gantry_gateway_store_failures_total') ?? 0) > 0);
  });

  test(`a gateway that starts without its Redis answers, and finds it later (${onFailure})`, async () => {
    await using upstream = await TestUpstream.start();
    await using redis = await TestRedis.start();
    await redis.kill();
    await using gateway = await TestGateway.start({
      upstream: upstream.url,
      store: { kind: 'redis', url: redis.url, onFailure, timeoutMs: 5000 },
    });

    const before = await gateway.request('/user');
    await redis.start();

    assert.equal(before.status, onFailure === 'open' ? 200 : 503);
    await eventually('Redis is used', async () => {
      const { status } = await gateway.request('/user');
      const state = await askCaller(gateway.adminSocket, 'ip:127.0.0.1').catch(() => undefined);
      return status === 200 && (state?.windows.length ?? 0) > 0;
    });
  });
}

test('Redis: a gateway takes requests when the connection is there, and not before', async () => {
  await using upstream = await TestUpstream.start();
  await using redis = await TestRedis.start();
  await using way = await slowWayTo(redis.url);
  await using gateway = await TestGateway.start({
    upstream: upstream.url,
    store: { kind: 'redis', url: way.url, timeoutMs: 5000 },
  });

  const first = await gateway.request('/user');

  assert.equal(first.status, 200);
  assert.equal(first.headers['x-ratelimit-used'], '1');
});

/** Each connection is passed on a quarter of a second after it was opened. */
async function slowWayTo(socketPath: string): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((near) => {
    near.on('error', () => near.destroy()).pause();
    setTimeout(() => {
      const far = connect(socketPath);
      far.on('error', () => near.destroy()).on('close', () => near.destroy());
      near.on('close', () => far.destroy());
      near.pipe(far).pipe(near);
    }, 250);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}

test('Redis: nobody is refused because the gateway stood still', async () => {
  await using upstream = await TestUpstream.start();
  await using redis = await TestRedis.start();
  await using gateway = await TestGateway.start({
    upstream: upstream.url,
    limits: { anonymous: 100_000 },
    secondary: {
      ...{ concurrent: { limit: 1000 }, restPoints: { limit: 100_000 } },
      cpu: { totalSeconds: 400, graphqlSeconds: 400 }, // eight seconds of all of them on a busy machine
    },
    store: { kind: 'redis', url: redis.url, timeoutMs: 1000 },
  });
  const statuses = new Map<number, number>();
  const until = new AbortController();
  const client = async (): Promise<void> => {
    while (!until.signal.aborted) {
      const { status } = await gateway.request('/user');
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  const clients = Array.from({ length: 50 }, client);

  for (let stall = 0; stall < 3; stall += 1) {
    await sleep(100);
    gateway.signal('SIGSTOP');
    await sleep(1400);
    gateway.signal('SIGCONT');
  }
  await sleep(100);
  until.abort();
  await Promise.all(clients);

  assert.deepEqual([...statuses.keys()], [200]);
});

test('Redis: the log says once that it is away, and once that it is back', async () => {
  await using upstream = await TestUpstream.start();
  await using redis = await TestRedis.start();
  const store = { kind: 'redis', url: redis.url, timeoutMs: 5000 } as const;
  await using gateway = await TestGateway.start({ upstream: upstream.url, limits: { anonymous: 10_000 }, store });
  await eventually('Redis is found', async () => (await gateway.request('/user')).status === 200);
  const killedAt = Date.now();

  await redis.kill();
  const away = await Promise.all(Array.from({ length: 50 }, async () => await gateway.request('/user')));
  for (let n = 0; n < 50; n += 1) away.push(await gateway.request('/user'));
  await redis.start();
  await eventually('it is back', () => linesSince(gateway, killedAt).includes('the store answers again'));

  assert.ok(away.every(({ status }) => status === 503));
  assert.deepEqual(linesSince(gateway, killedAt), ['the store does not answer', 'the store answers again']);
  assert.ok(Number(gateway.log.at(-1)?.['failures']) >= 100);
});

test('Redis: the places of a killed gateway are free again after its lease, and not before', async () => {
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/held');
  await using redis = await TestRedis.start();
  const settings: Settings = {
    upstream: upstream.url,
    secondary: { concurrent: { limit: 2 } },
    store: { kind: 'redis', url: redis.url, leaseSeconds: 6 },
  };
  await using killed = await TestGateway.start(settings);
  await using other = await TestGateway.start(settings);
  const unanswered = ['/held', '/held'].map(async (path) => await killed.request(path).catch(() => undefined));
  await upstream.until(() => held.waiting() === 2);
  const during = await other.request('/user');

  killed.signal('SIGKILL');
  await killed.exited;
  const started = performance.now();
  const atOnce = await other.request('/user');
  await eventually('the places are free', async () => (await other.request('/user')).status === 200);
  const seconds = (performance.now() - started) / 1000;

  await Promise.all(unanswered);
  assert.deepEqual([during.status, atOnce.status], [403, 403]);
  assert.ok(seconds > 0.5, `${seconds} s`);
});

test('with sentinels a gateway goes over to the next master, with one line for each change', async () => {
  await using upstream = await TestUpstream.start();
  await using servers = await startSentinels();
  const sentinels = servers.sentinels.map(({ port }) => `redis://127.0.0.1:${port}`);
  await using gateway = await TestGateway.start({
    upstream: upstream.url,
    limits: { anonymous: 10_000 },
    secondary: { restPoints: { limit: 10_000 } },
    store: { kind: 'redis', url: 'redis://main', sentinels, timeoutMs: 5000 },
  });
  await eventually('the master is found', async () => (await gateway.request('/user')).status === 200);
  const killedAt = Date.now();

  await servers.data[0]!.redis.kill();
  const statuses = new Set<number>();
  await eventually('the other one has taken over', async () => {
    const { status } = await gateway.request('/user');
    statuses.add(status);
    return statuses.size === 2 && status === 200;
  });
  await eventually('it is back', () => linesSince(gateway, killedAt).includes('the store answers again'));

  assert.deepEqual(statuses, new Set([503, 200]));
  assert.deepEqual(linesSince(gateway, killedAt), ['the store does not answer', 'the store answers again']);
});

test('addresses of Redis that cannot be are told', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({ upstream: upstream.url });
  const problemsOf = async (store: object): Promise<string> => {
    gateway.write({ upstream: upstream.url, store });
    return (await runGatewayCommand('--check-config', gateway.file)).output;
  };

  assert.match(
    await problemsOf({ kind: 'redis', url: '/a.sock', sentinels: ['10.0.0.1:1'] }),
    /store\.url.*\n.*store\.sentinels\.0/,
  );
  assert.match(
    await problemsOf({ kind: 'redis', url: 'redis://a', cluster: ['redis://b:1'] }),
    /store\.url: a cluster has/,
  );
  assert.match(await problemsOf({ kind: 'memory', cluster: ['redis://b:1'] }), /memory has no cluster/);
});

test('no more than 100 requests are under way at once, though gateway and Redis stand still for longer than a lease', async () => {
  await using redis = await TestRedis.start();
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/held');
  await using gateway = await TestGateway.start({
    upstream: upstream.url,
    limits: { anonymous: 1000 },
    store: { kind: 'redis', url: redis.url, leaseSeconds: 3 },
  });
  /** 503 is no decision. */
  const ask = async (): Promise<number> => {
    const { status } = await gateway.request('/held');
    return status === 503 ? await sleep(50).then(ask) : status;
  };
  const begun = Array.from({ length: 150 }, ask);
  await upstream.until(() => held.waiting() === 100);

  gateway.signal('SIGSTOP');
  await sleep(5000);
  gateway.signal('SIGCONT');
  const afterGateway = await Promise.all(Array.from({ length: 20 }, ask));
  redis.freeze();
  await sleep(5000);
  redis.thaw();
  const afterRedis = await Promise.all(Array.from({ length: 20 }, ask));

  const most = held.waiting();
  held.release();
  const statuses = await Promise.all(begun);
  assert.equal(most, 100);
  assert.deepEqual(new Set([...afterGateway, ...afterRedis]), new Set([403]));
  assert.equal(statuses.filter((status) => status === 200).length, 100);
});
