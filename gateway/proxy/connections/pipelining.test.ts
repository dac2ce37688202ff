import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { RawClient } from '@gantry/testing/gateway/raw-client.ts';
import { type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

/** As short as a request can be, so that very many are read at once. */
const HELD = 'GET /held HTTP/1.1\r\nHost:a\r\n\r\n';
/** Bytes of one read of a connection. */
const CHUNK_BYTES = 65_536;

const generous: Settings = {
  limits: { anonymous: 1_000_000 },
  secondary: { restPoints: { limit: 1_000_000 }, concurrent: { limit: 'off' } },
};

async function underWay(gateway: TestGateway): Promise<number> {
  return (await gateway.metrics()).get('gantry_gateway_requests_under_way') ?? 0;
}

/** After this the gateway has read what had come to it before. */
async function askedOften(gateway: TestGateway): Promise<void> {
  for (let n = 0; n < 50; n += 1) await gateway.request('/user', { from: '127.0.0.2' });
}

test('pipelined requests are handled ten at a time, in their order', async () => {
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/held');
  await using gateway = await TestGateway.start({ ...generous, upstream: upstream.url });
  using client = await RawClient.connect(gateway);

  client.send(Array.from({ length: 150 }, (_, n) => `GET /held?${n} HTTP/1.1\r\nHost: a\r\n\r\n`).join(''));
  await upstream.until(() => held.waiting() === 10);
  await askedOften(gateway);
  const atOnce = held.waiting();
  held.release();
  const used: string[] = [];
  for (let n = 0; n < 150; n += 1) used.push((await client.answer()).headers.get('x-ratelimit-used') ?? '');

  assert.equal(atOnce, 10);
  assert.deepEqual(
    used,
    Array.from({ length: 150 }, (_, n) => String(n + 1)),
  );
  assert.equal(await underWay(gateway), 0);
});

test('no more is read of a client that awaits no answers', async () => {
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/held');
  await using gateway = await TestGateway.start({ ...generous, upstream: upstream.url });
  using client = await RawClient.connect(gateway);

  client.send(HELD.repeat((40 * CHUNK_BYTES) / HELD.length));
  await upstream.until(() => held.waiting() === 10);
  await askedOften(gateway);

  const read = await underWay(gateway);
  held.release();
  assert.ok(read <= 100 + CHUNK_BYTES / HELD.length, `${read} requests`);
});

test('requests that wait for earlier ones of their connections are bounded in all', async () => {
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/held');
  await using gateway = await TestGateway.start({ ...generous, upstream: upstream.url });
  await using undo = new AsyncDisposableStack();
  const clients: RawClient[] = [];
  for (let n = 0; n < 10; n += 1) clients.push(undo.use(await RawClient.connect(gateway)));

  for (const client of clients) client.send(HELD.repeat((2 * CHUNK_BYTES) / HELD.length));
  await eventually('connections are closed for it', async () => {
    return ((await gateway.metrics()).get('gantry_gateway_connections_rejected_total') ?? 0) > 0;
  });
  await askedOften(gateway);

  const read = await underWay(gateway);
  assert.ok(read <= 5000 + 10 * 10, `${read} requests`);
  for (const client of clients) client.socket.destroy();
  held.release(); // what is not read of is noticed to be gone when it is written to
  await eventually('nothing is left', async () => (await underWay(gateway)) === 0);
});

test('a client that sends and does not read is left when nothing has moved for the idle time', async () => {
  await using upstream = await TestUpstream.start();
  upstream.on('/large', (_request, response) => void response.end('x'.repeat(1_000_000)));
  await using gateway = await TestGateway.start({
    ...generous,
    upstream: upstream.url,
    timeouts: { idleMs: 1000 },
  });
  using client = await RawClient.connect(gateway);
  client.socket.pause();

  client.send('GET /large HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1000));
  await upstream.until(() => upstream.count('/large') > 0);

  await eventually('it is left', async () => (await underWay(gateway)) === 0);
  const asked = upstream.count('/large');
  assert.ok(asked < 200, `${asked} requests`);
});

test('an upgrade behind unanswered requests is served as a plain request, a CONNECT not at all', async () => {
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/held');
  await using gateway = await TestGateway.start({ ...generous, upstream: upstream.url });
  using upgrading = await RawClient.connect(gateway);
  using connecting = await RawClient.connect(gateway);

  upgrading.send(`${HELD}GET /socket HTTP/1.1\r\nHost:a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  connecting.send(`${HELD}CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`);
  await upstream.until(() => held.waiting() === 2 && upstream.count('/socket') === 1);
  held.release();
  const statuses = [await upgrading.answer(), await upgrading.answer(), await connecting.answer()];
  await connecting.closed;

  assert.deepEqual(
    statuses.map(({ status }) => status),
    [200, 200, 200],
  );
  assert.equal(connecting.received, '');
});
