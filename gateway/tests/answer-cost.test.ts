import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { type Answer, type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';
import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

import { askCaller } from '../admin/client.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());
const redis = await TestRedis.start();
after(async () => await redis[Symbol.asyncDispose]());
for (const status of [204, 304, 404, 500, 503]) {
  upstream.on(`/status/${status}`, (_, response) => void response.writeHead(status).end());
}
upstream.on('/broken', (request) => void request.socket.destroy());
upstream.on('/cost', (request, response) => {
  const cost = new URL(request.url!, upstream.url).searchParams.getAll('is');
  response.writeHead(200, cost.length === 0 ? {} : { 'X-Request-Cost': cost }).end('ok');
});

let addresses = 0;
const newAddress = (): string => `127.0.7.${(addresses += 1)}`;

/** The numbers of an answer's headers, which have to agree. */
function shown({ headers, status }: Answer): [used: number, remaining: number] {
  const [limit, used, remaining] = ['limit', 'used', 'remaining'].map((name) => Number(headers[`x-ratelimit-${name}`]));
  assert.equal(used! + remaining!, limit, `${status}: ${JSON.stringify(headers)}`);
  return [used!, remaining!];
}

async function coreOf(gateway: TestGateway, from: string): Promise<number | undefined> {
  const { windows } = await askCaller(gateway.adminSocket, `ip:${from}`);
  return windows.find(({ name }) => name === 'core')?.used;
}

test('cost.free: answers of these statuses cost nothing of the primary limit', async () => {
  await using gateway = await TestGateway.start({ upstream: upstream.url, cost: { free: [304, '5xx'] } });
  const rows = [
    ['/status/304', 304, 0],
    ['/status/500', 500, 0],
    ['/status/503', 503, 0],
    ['/broken', 502, 0], // the gateway's own
    ['/status/204', 204, 1],
    ['/status/404', 404, 1],
    ['/%00', 400, 1],
  ] as const;

  for (const [path, status, cost] of rows) {
    const from = newAddress();
    const first = await gateway.request('/user', { from });
    const answer = await gateway.request(path, { from });
    const next = await gateway.request('/user', { from });

    assert.deepEqual([shown(first), answer.status], [[1, 59], status], path);
    assert.deepEqual(
      [shown(answer), shown(next)],
      [
        [1 + cost, 59 - cost],
        [2 + cost, 58 - cost],
      ],
      path,
    );
  }
  const from = newAddress();
  const refused = await gateway.request('/user', { from, token: 'unknown' });
  assert.deepEqual([refused.status, shown(refused)], [401, [1, 59]]);
  for (let n = 0; n < 100; n += 1) await gateway.request('/status/304', { from });
  assert.deepEqual(shown(await gateway.request('/user', { from })), [2, 58]);
});

test('cost.header: the upstream says the cost, within bounds, and clients do not see it', async () => {
  await using gateway = await TestGateway.start({
    upstream: upstream.url,
    limits: { anonymous: 5000 },
    cost: { header: 'X-Request-Cost', free: [204] },
  });
  const rows = [
    ['', 1],
    ['?is=0', 0],
    ['?is=1', 1],
    ['?is=25', 25],
    ['?is=0025', 25],
    ['?is=1000', 1000],
    ['?is=1001', 1000],
    [`?is=${'9'.repeat(400)}`, 1000],
    ...['-5', 'NaN', 'Infinity', '1.5', '1e3', '0x10', '', 'ten', '5,7'].map((text) => [`?is=${text}`, 1] as const),
    ['?is=5&is=7', 1],
  ] as const;

  for (const [query, cost] of rows) {
    const from = newAddress();
    const answer = await gateway.request(`/cost${query}`, { from });
    const next = await gateway.request('/user', { from });

    assert.equal(answer.headers['x-request-cost'], undefined);
    assert.deepEqual(
      [shown(answer), shown(next)],
      [
        [cost, 5000 - cost],
        [cost + 1, 4999 - cost],
      ],
      query,
    );
  }
});

test('a cost beyond the limit uses it up, and the next request is refused', async () => {
  await using gateway = await TestGateway.start({ upstream: upstream.url, cost: { header: 'x-request-cost' } });

  const answer = await gateway.request('/cost?is=80');
  const refused = await gateway.request('/user');

  assert.deepEqual([answer.status, shown(answer)], [200, [60, 0]]);
  assert.deepEqual([refused.status, shown(refused)], [403, [60, 0]]);
});

test('GraphQL, HEAD and a declined upgrade have their costs too', async () => {
  await using gateway = await TestGateway.start({
    upstream: upstream.url,
    cost: { header: 'x-request-cost', free: [304] },
  });
  upstream.on('/graphql', (_, response) => void response.writeHead(200, { 'x-request-cost': '7' }).end('{}'));
  const headers = { 'content-type': 'application/json' };

  const query = await gateway.request('/graphql', { method: 'POST', body: '{"query":"{ a }"}', headers });
  const mutation = await gateway.request('/graphql', { method: 'POST', body: '{"query":"mutation { a }"}', headers });
  const head = await gateway.request('/cost?is=4', { method: 'HEAD' });
  const upgrade = { connection: 'upgrade', upgrade: 'websocket' };
  const declined = await gateway.request('/status/304', { headers: upgrade });

  assert.deepEqual(
    [shown(query), shown(mutation)],
    [
      [7, 53],
      [14, 46],
    ],
  );
  assert.deepEqual(
    [shown(head), shown(declined)],
    [
      [4, 56],
      [4, 56],
    ],
  );
});

const kinds: readonly (readonly [name: string, Settings])[] = [
  ['memory', {}],
  ['two workers', { workers: 2 }],
  ['SQLite', { store: { kind: 'sqlite', path: '{folder}/counts.db' } }],
  ['Redis', { store: { kind: 'redis', url: redis.url, prefix: 'one:' } }],
  ['two workers with Redis', { workers: 2, store: { kind: 'redis', url: redis.url, prefix: 'two:' } }],
];
for (const [name, own] of kinds) {
  test(`a free answer gives back exactly the cost of its request (${name})`, async () => {
    await using gateway = await TestGateway.start({
      upstream: upstream.url,
      cost: { free: [304], header: 'x-request-cost' },
      ...own,
    });
    const from = newAddress();
    const paths = ['/status/304', '/user', '/cost?is=3', '/cost?is=0'];

    const answers = await Promise.all(
      Array.from({ length: 40 }, async (_, n) => await gateway.request(paths[n % 4]!, { from })),
    );

    for (const answer of answers) shown(answer);
    assert.ok(answers.every(({ status }) => status !== 403));
    await eventually('all costs are known', async () => (await coreOf(gateway, from)) === 40);
    assert.deepEqual(shown(await gateway.request('/user', { from })), [41, 19]);
  });
}

test('a gateway that is killed before the answer gives nothing back, and no other gateway does', async () => {
  const store = { kind: 'redis', url: redis.url, prefix: 'killed:' } as const;
  const settings: Settings = { upstream: upstream.url, cost: { free: [304] }, store };
  await using killed = await TestGateway.start(settings);
  await using other = await TestGateway.start(settings);
  const from = newAddress();
  const held = upstream.hold('/held');
  killed.request('/held', { from }).catch(() => undefined);
  await eventually('the request has reached the upstream', () => held.waiting() === 1);

  killed.signal('SIGKILL');
  await killed.exited;
  held.release();
  const free = await other.request('/status/304', { from });
  const next = await other.request('/user', { from });

  assert.deepEqual(
    [shown(free), shown(next)],
    [
      [1, 59],
      [2, 58],
    ],
  );
});

test('with Redis a refusal is not remembered while requests that may be free are under way', async () => {
  const store = { kind: 'redis', url: redis.url, prefix: 'known:' } as const;
  const settings: Settings = { upstream: upstream.url, limits: { anonymous: 1 }, cost: { free: ['2xx'] }, store };
  await using one = await TestGateway.start(settings);
  await using other = await TestGateway.start(settings);
  const from = newAddress();
  const held = upstream.hold('/free');
  const first = one.request('/free', { from });
  await eventually('the request has reached the upstream', () => held.waiting() === 1);

  const refused = await other.request('/status/404', { from });
  held.release();
  const answer = await first;
  await eventually('the cost is known', async () => (await coreOf(other, from)) === 0);
  const admitted = await other.request('/status/404', { from });

  assert.deepEqual([refused.status, shown(refused)], [403, [1, 0]]);
  assert.deepEqual([shown(answer), admitted.status, shown(admitted)], [[0, 1], 404, [1, 0]]);
});
