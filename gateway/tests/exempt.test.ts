import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { sha256, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../admin/client.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());
const gateway = await TestGateway.start({
  upstream: upstream.url,
  basePath: '/api',
  limits: { anonymous: 1, user: 1 },
  secondary: { concurrent: { limit: 1 } },
  refusal: { retryAfter: true },
  exempt: { routes: ['GET /healthz', 'GET /api/status/{name}'], callers: ['user:robot', 'ip:127.0.9.9'] },
  identities: {
    users: { robot: {}, person: {} },
    tokens: [
      { sha256: sha256('robot-token'), user: 'robot' },
      { sha256: sha256('person-token'), user: 'person' },
    ],
  },
});
after(async () => await gateway[Symbol.asyncDispose]());

let addresses = 0;
const newAddress = (): string => `127.0.8.${(addresses += 1)}`;

async function statuses(path: string, count: number, options: object): Promise<number[]> {
  const found: number[] = [];
  for (let n = 0; n < count; n += 1) found.push((await gateway.request(path, options)).status);
  return found;
}

for (const path of ['/healthz', '/HEALTHZ', '/healthz/', '/healthz?full=1', '/api/status/db']) {
  test(`the exempt route GET ${path} is never refused, and counts nowhere`, async () => {
    const from = newAddress();

    assert.deepEqual(await statuses(path, 4, { from }), [200, 200, 200, 200]);

    const { windows, underWay } = await askCaller(gateway.adminSocket, `ip:${from}`);
    assert.deepEqual([windows, underWay], [[], 0]);
  });
}

for (const [method, path] of [
  ['POST', '/healthz'],
  ['GET', '/healthz/more'],
  ['GET', '/healthz;a'],
  ['GET', '/%68ealthz%3b'],
  ['GET', '/api/status/db/more'],
  ['GET', '/api/status'],
  ['GET', '/api/healthz'],
] as const) {
  test(`${method} ${path} is not exempt`, async () => {
    const found = await statuses(path, 3, { from: newAddress(), method });

    assert.equal(found.at(-1), 403);
  });
}

test('exempt callers have no limits, by token or address', async () => {
  const robot = await statuses('/api/user', 4, { token: 'robot-token', from: newAddress() });
  const person = await statuses('/api/user', 2, { token: 'person-token', from: newAddress() });
  const address = await statuses('/api/user', 4, { from: '127.0.9.9' });

  assert.deepEqual(
    [robot, person, address],
    [
      [200, 200, 200, 200],
      [200, 403],
      [200, 200, 200, 200],
    ],
  );
});

test('an exempt caller reads its limits, and a wrong token from its address is refused', async () => {
  const { body, status } = await gateway.request('/api/rate_limit', { from: '127.0.9.9' });
  const wrong = await statuses('/api/user', 3, { from: '127.0.9.9', token: 'nobody' });

  assert.equal(status, 200);
  assert.equal((JSON.parse(body) as { rate: { used: number } }).rate.used, 0);
  assert.deepEqual(wrong, [401, 403, 403]);
});

test('a primary refusal has Retry-After where that is set: the seconds until the reset', async () => {
  const from = newAddress();
  await gateway.request('/api/user', { from });

  const { headers, status } = await gateway.request('/api/user', { from });

  assert.equal(status, 403);
  const left = Number(headers['x-ratelimit-reset']) - Date.now() / 1000;
  assert.ok(Math.abs(Number(headers['retry-after']) - left) < 60, String(headers['retry-after']));
});
