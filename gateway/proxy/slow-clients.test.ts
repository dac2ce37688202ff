import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { readdirSync, readlinkSync } from 'node:fs';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { eventually } from '@gantry/testing/eventually.ts';
import { RawClient } from '@gantry/testing/gateway/raw-client.ts';
import { type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../admin/client.ts';
import { MAX_HELD_BYTES } from './bodies/await-body.ts';
import { UpstreamSlots } from './upstream-slots.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());

async function start(upstreamConnections: number, own: Settings = {}): Promise<TestGateway> {
  const limits = { anonymous: 100_000 };
  return await TestGateway.start({ upstream: upstream.url, limits, sizes: { upstreamConnections }, ...own });
}

const head = (path: string, length: number): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`;

async function cpuOf(gateway: TestGateway, from: string): Promise<number> {
  const { windows } = await askCaller(gateway.adminSocket, `ip:${from}`);
  return windows.find(({ name }) => name === 'cpu')?.used ?? 0;
}

/** The running requests of a caller are charged twice a second: it is not charged any more. */
async function costsNothing(gateway: TestGateway, from: string): Promise<void> {
  await eventually('the request costs no CPU time', async () => {
    const before = await cpuOf(gateway, from);
    await sleep(1200);
    return (await cpuOf(gateway, from)) === before;
  });
}

test('an upload takes no connection to the upstream and no CPU time before it has arrived', async () => {
  await using gateway = await start(2);
  using clients = new DisposableStack();
  const uploads: RawClient[] = [];
  for (let n = 10; n < 16; n += 1) uploads.push(clients.use(await RawClient.connect(gateway, `127.0.0.${n}`)));
  for (const upload of uploads) upload.send(`${head('/slow-upload', 10)}abc`);
  await eventually(
    'all are under way',
    async () => (await gateway.metrics()).get('gantry_gateway_requests_under_way') === 6,
  );

  const other = await gateway.request('/user', { from: '127.0.0.2' });
  const before = upstream.count('/slow-upload');
  const { underWay } = await askCaller(gateway.adminSocket, 'ip:127.0.0.10');
  await costsNothing(gateway, '127.0.0.10');
  for (const upload of uploads) upload.send('defghij');
  const answers = await Promise.all(uploads.map(async (upload) => await upload.answer()));

  assert.deepEqual([other.status, before, underWay], [200, 0, 1]);
  assert.ok(answers.every(({ status, body }) => status === 200 && body.includes('"body":"abcdefghij"')));
});

test('a long upload that stalls costs no CPU time, and ends when another request needs its connection', async () => {
  upstream.on('/long-upload', (req) => void req.resume());
  await using gateway = await start(1);
  using upload = await RawClient.connect(gateway, '127.0.0.20');
  upload.send(head('/long-upload', 2 * MAX_HELD_BYTES) + 'x'.repeat(MAX_HELD_BYTES + 1));
  await upstream.until(() => upstream.count('/long-upload') === 1);
  await costsNothing(gateway, '127.0.0.20');

  const other = await gateway.request('/user', { from: '127.0.0.2' });
  const answer = await upload.answer();
  await upload.closed;

  assert.deepEqual([other.status, answer.status], [200, 408]);
  assert.ok(answer.headers.has('x-ratelimit-used'));
  assert.equal((await gateway.metrics()).get('gantry_gateway_slow_clients_total'), 1);
});

test('a long answer that is not read costs no CPU time, and ends when another request needs its connection', async () => {
  upstream.on('/long-answer', (_req, res) => void res.end(Buffer.alloc(64 * 2 ** 20)));
  await using gateway = await start(1);
  using reader = await RawClient.connect(gateway, '127.0.0.30');
  reader.socket.pause();
  reader.send('GET /long-answer HTTP/1.1\r\nHost: a\r\n\r\n');
  await upstream.until(() => upstream.count('/long-answer') === 1);
  await costsNothing(gateway, '127.0.0.30');

  const other = await gateway.request('/user', { from: '127.0.0.2' });
  reader.socket.resume();
  await reader.closed;

  assert.equal(other.status, 200);
  assert.ok(reader.received.length < 64 * 2 ** 20);
});

test('an answer of a megabyte that is not read leaves its connection to others', async () => {
  upstream.on('/answer', (_req, res) => void res.end(Buffer.alloc(MAX_HELD_BYTES, 'x')));
  await using gateway = await start(1);
  using reader = await RawClient.connect(gateway, '127.0.0.31');
  reader.socket.pause();
  reader.send('GET /answer HTTP/1.1\r\nHost: a\r\n\r\n');
  await upstream.until(() => upstream.count('/answer') === 1);

  const other = await gateway.request('/user', { from: '127.0.0.2' });
  reader.socket.resume();
  const answer = await reader.answer();

  assert.deepEqual([other.status, answer.body.length], [200, MAX_HELD_BYTES]);
  assert.equal((await gateway.metrics()).get('gantry_gateway_slow_clients_total'), 0);
});

test('a request that gets no connection in time is 504, and is not sent', async () => {
  const held = upstream.hold('/held');
  await using gateway = await start(2, { timeouts: { upstreamHeadersMs: 1500 } });

  const answers = await Promise.all(Array.from({ length: 8 }, async () => await gateway.request('/held')));

  assert.deepEqual(
    answers.map(({ status }) => status),
    Array<number>(8).fill(504),
  );
  assert.ok(answers.every(({ headers }) => headers['x-ratelimit-used'] !== undefined));
  assert.equal(upstream.count('/held'), 2);
  assert.equal((await gateway.metrics()).get('gantry_gateway_upstream_failures_total{kind="busy"}'), 6);
  await costsNothing(gateway, '127.0.0.1');
  held.release();
});

test('callers take turns for a connection, and one that leaves takes none', async () => {
  const held = upstream.hold('/turns');
  await using gateway = await start(1);
  const leaving = new AbortController();
  const ask = async (from: string, n: number, signal?: AbortSignal): Promise<{ sent: Promise<unknown> }> => {
    const sent = gateway.request(`/turns?${from}=${n}`, { from, ...(signal && { signal }) }).catch(() => 'left');
    await eventually(
      'it is under way',
      async () => (await askCaller(gateway.adminSocket, `ip:${from}`)).underWay === n,
    );
    return { sent };
  };
  const first = await ask('127.0.0.40', 1);
  await upstream.until(() => held.waiting() === 1);
  const others = [await ask('127.0.0.40', 2), await ask('127.0.0.40', 3), await ask('127.0.0.41', 1)];
  const left = await ask('127.0.0.42', 1, leaving.signal);
  leaving.abort();
  await eventually('it has left', async () => (await askCaller(gateway.adminSocket, 'ip:127.0.0.42')).underWay === 0);

  held.release();
  await Promise.all([first, left, ...others].map(async ({ sent }) => await sent));

  const order = upstream.received.flatMap(({ url }) => (url.startsWith('/turns?') ? url.slice(7) : []));
  assert.deepEqual(order, ['127.0.0.40=1', '127.0.0.40=2', '127.0.0.41=1', '127.0.0.40=3']);
});

test('bodies of many slow clients are kept in files, and arrive whole', async () => {
  upstream.on('/many', async (req, res) => {
    const pieces = await Array.fromAsync(req as AsyncIterable<Buffer>);
    res.end(hash('sha256', Buffer.concat(pieces)));
  });
  await using gateway = await start(4, { sizes: { upstreamConnections: 4 } });
  const body = 'abcdefghij'.repeat(100_000);
  using clients = new DisposableStack();
  const uploads: RawClient[] = [];
  for (let n = 0; n < 80; n += 1) uploads.push(clients.use(await RawClient.connect(gateway, '127.0.0.50')));
  for (const upload of uploads) {
    upload.send(head('/many', body.length) + body.slice(0, -1));
    await eventually('it was read', () => upload.socket.writableLength === 0);
  }
  await eventually('there are files', () => temporaryFiles(gateway.pid) >= 5);

  for (const upload of uploads) upload.send(body.slice(-1));
  const answers = await Promise.all(uploads.map(async (upload) => await upload.answer()));

  assert.deepEqual(new Set(answers.map((answer) => answer.body)), new Set([hash('sha256', body)]));
  await eventually('no file is left', () => temporaryFiles(gateway.pid) === 0);
});

function temporaryFiles(pid: number): number {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).filter((fd) => linkOf(`${folder}/${fd}`).includes('gantry-gateway-')).length;
}

/** A file may be closed meanwhile. */
function linkOf(path: string): string {
  try {
    const link = readlinkSync(path);
    return link.endsWith('(deleted)') ? link : '';
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return '';
    throw error;
  }
}

test('a full queue turns away the newest request of the caller with most', () => {
  const slots = new UpstreamSlots(1, 600_000);
  const told: string[] = [];
  using undo = new DisposableStack();
  const wait = (caller: string): void => {
    const giveUp = slots.wait(caller, {
      granted: () => void told.push(`${caller} granted`),
      failed: (reason) => void told.push(`${caller} ${reason}`),
    });
    undo.defer(giveUp);
  };
  slots.take();
  for (let n = 0; n < 4998; n += 1) wait('busy');
  wait('two');
  wait('two');

  wait('other');
  wait('busy');
  slots.give();
  slots.give();
  slots.give();

  assert.deepEqual(told, ['busy full', 'busy full', 'busy granted', 'two granted', 'other granted']);
});
