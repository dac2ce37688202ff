import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttpServer, type Server } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';

import { RawClient } from '@gantry/testing/gateway/raw-client.ts';
import { RawUpstream } from '@gantry/testing/gateway/raw-upstream.ts';
import { type Answer, type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../admin/client.ts';

const settings: Settings = { limits: { anonymous: 10_000 } };

async function underWay(gateway: TestGateway): Promise<number> {
  return (await askCaller(gateway.adminSocket, 'ip:127.0.0.1')).underWay;
}

function assertTellsClearly(answer: Answer, status: number): void {
  assert.equal(answer.status, status, answer.body);
  assert.equal(answer.headers['content-type'], 'application/json; charset=utf-8');
  assert.equal(typeof (JSON.parse(answer.body) as { message: unknown }).message, 'string');
  assert.equal(answer.headers['x-ratelimit-used'], '1');
}

/** A port without a listener. */
async function closedPort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

test('an upstream that is down is 502, also for a client that is still sending', async () => {
  await using gateway = await TestGateway.start({ ...settings, upstream: await closedPort() });

  const answer = await gateway.request('/user');
  const upload = await gateway.request('/upload', { method: 'POST', body: Buffer.alloc(5_000_000) });
  const graphql = await gateway.request('/graphql', {
    method: 'POST',
    headers: { 'transfer-encoding': 'chunked' },
    body: Buffer.alloc(5_000_000),
  });

  assertTellsClearly(answer, 502);
  assert.deepEqual([upload.status, graphql.status], [502, 502]);
  assert.equal(await underWay(gateway), 0);
  const metrics = await gateway.metrics();
  assert.equal(metrics.get('gantry_gateway_upstream_failures_total{kind="connect"}'), 3);
});

test('an upstream with an unknown name is 502', async () => {
  await using gateway = await TestGateway.start({ ...settings, upstream: 'http://nowhere.invalid:1' });

  assertTellsClearly(await gateway.request('/user'), 502);
});

test('an upstream that does not begin its answer in time is 504', async () => {
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/slow');
  await using gateway = await TestGateway.start({
    ...settings,
    upstream: upstream.url,
    timeouts: { upstreamHeadersMs: 500 },
  });

  const answer = await gateway.request('/slow');

  assertTellsClearly(answer, 504);
  assert.equal(await underWay(gateway), 0);
  await upstream.until(() => held.waiting() === 0);
});

test('an upstream that falls silent in the middle of its answer ends it visibly', async () => {
  await using upstream = await TestUpstream.start();
  upstream.on('/silent', (_req, res) => void res.write('half'));
  await using gateway = await TestGateway.start({
    ...settings,
    upstream: upstream.url,
    timeouts: { upstreamHeadersMs: 2000 },
  });
  using client = await RawClient.connect(gateway);

  client.send('GET /silent HTTP/1.1\r\nHost: a\r\n\r\n');
  await client.closed;

  assert.match(client.received, /200 OK[^]*half/);
  assert.doesNotMatch(client.received, /0\r\n\r\n$/);
  assert.equal(await underWay(gateway), 0);
});

/** A process that listens and is stopped; its queue is full, so that no further connection is answered. */
async function frozenUpstream(): Promise<AsyncDisposable & { url: string }> {
  const program = `require('net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () {
    console.log(this.address().port);
  })`;
  const child = spawn(process.execPath, ['--eval', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(line.toString());
  child.kill('SIGSTOP');
  const queued = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => undefined));
  await once(queued[0]!, 'connect');
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      for (const socket of queued) socket.destroy();
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

test('an upstream that takes no connection in time is 504', async () => {
  await using upstream = await frozenUpstream();
  await using gateway = await TestGateway.start({
    ...settings,
    upstream: upstream.url,
    timeouts: { upstreamHeadersMs: 60_000 },
  });

  assertTellsClearly(await gateway.request('/user'), 504);
});

const partial = {
  'a length': 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf',
  chunks: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n',
} as const;

test('an upstream that dies in the middle of an answer ends it visibly, and is not asked again', async () => {
  let head = '';
  let end = (_socket: Socket): void => undefined;
  await using upstream = await RawUpstream.start((socket) => socket.write(head, () => end(socket)));
  await using gateway = await TestGateway.start({ ...settings, upstream: upstream.url });

  for (const [what, text] of Object.entries(partial)) {
    for (const how of ['destroy', 'resetAndDestroy'] as const) {
      const before = upstream.sockets.length;
      head = text;
      end = (socket) => socket[how]();
      using client = await RawClient.connect(gateway);

      client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
      await client.closed;

      assert.doesNotMatch(client.received, /0\r\n\r\n$/, `${how} after ${what}`);
      assert.equal(await underWay(gateway), 0);
      assert.equal(upstream.sockets.length, before + 1);
    }
  }
});

/** Answers one request on each connection; the next one finds it closed. */
async function forgetfulUpstream(how: (socket: Socket) => void): Promise<RawUpstream & { asked: string[] }> {
  const asked: string[] = [];
  const answered = new Set<Socket>();
  const upstream = await RawUpstream.start((socket, text) => {
    asked.push(text.slice(0, text.indexOf(' ')));
    if (answered.has(socket)) return how(socket);
    answered.add(socket);
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  });
  return Object.assign(upstream, { asked });
}

for (const [what, how] of [
  ['closes', (socket: Socket) => socket.destroy()],
  ['resets', (socket: Socket) => socket.resetAndDestroy()],
] as const) {
  for (const method of ['GET', 'HEAD', 'OPTIONS']) {
    test(`an upstream that ${what} a connection which it had kept is asked again: ${method}`, async () => {
      await using upstream = await forgetfulUpstream(how);
      await using gateway = await TestGateway.start({ ...settings, upstream: upstream.url });
      await gateway.request('/user');

      const { status } = await gateway.request('/user', { method });

      assert.equal(status, 200);
      assert.deepEqual(upstream.asked, ['GET', method, method]);
    });
  }

  test(`an upstream that ${what} a connection which it had kept is not asked twice to change something`, async () => {
    await using upstream = await forgetfulUpstream(how);
    await using gateway = await TestGateway.start({ ...settings, upstream: upstream.url });
    await gateway.request('/user');

    const posted = await gateway.request('/issues', { method: 'POST', body: '{}' });
    await gateway.request('/user');
    const deleted = await gateway.request('/issues/1', { method: 'DELETE' });

    assert.deepEqual([posted.status, deleted.status], [502, 502]);
    assert.deepEqual(upstream.asked, ['GET', 'POST', 'GET', 'DELETE']);
  });
}

test('an upstream that always closes its connections is asked twice, and no more', async () => {
  const asked: string[] = [];
  await using upstream = await RawUpstream.start((socket, text) => {
    asked.push(text);
    socket.destroy();
  });
  await using gateway = await TestGateway.start({ ...settings, upstream: upstream.url });

  assertTellsClearly(await gateway.request('/user'), 502);
  assert.equal(asked.length, 2);
});

test('an upstream that comes back is used again', async () => {
  const port = Number(new URL(await closedPort()).port);
  await using gateway = await TestGateway.start({ ...settings, upstream: `http://127.0.0.1:${port}` });
  const open = async (): Promise<Server> => {
    const server = createHttpServer((_req, res) => res.writeHead(204).end()).listen(port, '127.0.0.1');
    await once(server, 'listening');
    return server;
  };

  const statuses: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    statuses.push((await gateway.request('/user')).status);
    const server = await open();
    statuses.push((await gateway.request('/user')).status);
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }

  assert.deepEqual(statuses, [502, 204, 502, 204, 502, 204]);
});
