/** Servers behind the gateway: by Unix socket, with a prefix, and several of them. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';

const settings: Settings = { limits: { anonymous: 10_000 }, secondary: { restPoints: { limit: 'off' } } };

/** A server that answers with its name and the path. */
class Named implements AsyncDisposable {
  readonly server: Server;
  readonly urls: string[] = [];
  answer: ((response: ServerResponse) => void) | undefined;
  isHealthy = true;

  private constructor(name: string) {
    this.server = createServer({ keepAliveTimeout: 0 }, (req: IncomingMessage, res) => {
      req.resume();
      if (req.url?.endsWith('/healthz') === true) return res.writeHead(this.isHealthy ? 200 : 500).end();
      this.urls.push(req.url ?? '');
      if (this.answer === undefined) res.end(`${name} ${req.url}`);
      else this.answer(res);
    });
  }

  static async start(name: string, address: { path: string } | { port: number } = { port: 0 }): Promise<Named> {
    const named = new Named(name);
    named.server.listen({ ...address, ...('port' in address && { host: '127.0.0.1' }) });
    await once(named.server, 'listening');
    return named;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.server.listening) return;
    const closed = once(this.server, 'close');
    this.server.close();
    this.server.closeAllConnections();
    await closed;
  }
}

const prefixes: readonly (readonly [prefix: string, path: string, passed: string])[] = [
  ['', '/user?a=1', '/user?a=1'],
  ['/v1.2', '/a.b/../user', '/v1.2/user'],
  ['/v1.2/', '/', '/v1.2/'],
  ['/a/b', '//repos/./x/..', '/a/b/repos/'],
];

test('an upstream is reached by a Unix socket and by a port, with the prefix before each path', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'gantry-upstreams-'));
  const path = join(folder.path, 'host.sock');
  await using bySocket = await Named.start('socket', { path });
  await using byPort = await Named.start('port');
  await using gateway = await TestGateway.start({ ...settings, upstream: byPort.url });
  for (const [prefix, asked, passed] of prefixes) {
    for (const [name, upstream] of [
      ['socket', `unix:${path}${prefix === '' ? '' : `:${prefix}`}`],
      ['port', `${byPort.url}${prefix}`],
    ] as const) {
      await gateway.reload({ ...settings, upstream });

      assert.equal((await gateway.request(asked)).body, `${name} ${passed}`);
      assert.equal((await gateway.request('/../user')).status, 400);
    }
  }
  assert.equal(bySocket.urls.length, prefixes.length);
});

test('an upgrade goes to the Unix socket, with its prefix', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'gantry-upstreams-'));
  const path = join(folder.path, 'host.sock');
  await using named = await Named.start('socket', { path });
  named.server.on('upgrade', (req: IncomingMessage, socket) => {
    socket.end(`HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: test\r\nx-url: ${req.url}\r\n\r\n`);
  });
  await using gateway = await TestGateway.start({ ...settings, upstream: `unix:${path}:/api` });

  const outgoing = request({ ...gateway.target, path: '/live', headers: { connection: 'upgrade', upgrade: 'test' } });
  outgoing.end();
  const [incoming, socket] = (await once(outgoing, 'upgrade')) as [IncomingMessage, { destroy(): void }];
  socket.destroy();

  assert.equal(incoming.headers['x-url'], '/api/live');
});

test('requests go to the server with the fewest under way', async () => {
  await using one = await Named.start('one');
  await using two = await Named.start('two');
  const waiting: ServerResponse[] = [];
  for (const named of [one, two]) named.answer = (response) => void waiting.push(response);
  await using gateway = await TestGateway.start({ ...settings, upstream: [one.url, two.url] });
  const held = [];
  for (let count = 1; count <= 6; count += 1) {
    held.push(gateway.request('/slow'));
    await eventually('the request has arrived', () => waiting.length === count);
  }
  for (const response of waiting) response.end();
  await Promise.all(held);

  assert.deepEqual([one.urls.length, two.urls.length], [3, 3]);
});

test('a server that is down, and one that dies in the middle, leave the others', async () => {
  await using down = await Named.start('down');
  const { url: nobody } = down;
  await down[Symbol.asyncDispose]();
  await using dying = await Named.start('dying');
  await using alive = await Named.start('alive');
  await using gateway = await TestGateway.start({ ...settings, upstream: [nobody, dying.url, alive.url] });
  const body = 'x'.repeat(10_000);
  const statusOf = async (method: string): Promise<number> =>
    (await gateway.request('/user', method === 'GET' ? {} : { method, body })).status;

  const before = await Promise.all(Array.from({ length: 20 }, async (_, n) => await statusOf(n % 2 ? 'POST' : 'GET')));
  dying.answer = (response) => {
    response.writeHead(200, { 'content-length': '1000' }).write('half');
    setImmediate(() => response.destroy());
  };
  const broken = await Promise.allSettled(Array.from({ length: 20 }, async () => await statusOf('GET')));
  await dying[Symbol.asyncDispose]();
  const after = await Promise.all(Array.from({ length: 20 }, async () => await statusOf('POST')));

  assert.deepEqual(new Set([...before, ...after]), new Set([200]));
  assert.ok(broken.some(({ status }) => status === 'fulfilled'));
  assert.ok(dying.urls.length > 0);
  assert.ok(((await gateway.metrics()).get('gantry_gateway_upstream_failures_total{kind="connect"}') ?? 0) > 0);
});

test('all servers that are down are 502, in the form of other answers', async () => {
  const one = await Named.start('one');
  const two = await Named.start('two');
  const upstream = [one.url, two.url];
  for (const named of [one, two]) await named[Symbol.asyncDispose]();
  await using gateway = await TestGateway.start({ ...settings, upstream });

  for (const method of ['GET', 'POST']) {
    const { status, body, headers } = await gateway.request('/user', {
      method,
      ...(method === 'POST' && { body: 'x' }),
    });

    assert.equal(status, 502);
    assert.deepEqual(JSON.parse(body), { message: 'The upstream server cannot be reached.' });
    assert.equal(headers['x-ratelimit-limit'], '10000');
  }
});

test('after a failed health check a server gets no requests until the next good one', async () => {
  await using one = await Named.start('one');
  await using two = await Named.start('two');
  one.isHealthy = false;
  await using gateway = await TestGateway.start({
    ...settings,
    upstream: [`${one.url}/api`, two.url],
    upstreamHealth: '/healthz',
  });
  const answersOf = async (count: number): Promise<Set<string>> =>
    new Set(await Promise.all(Array.from({ length: count }, async () => (await gateway.request('/user')).body)));
  await eventually('the first is left out', async () => (await answersOf(20)).size === 1);
  two.isHealthy = false;
  await eventually('nobody is left', async () => (await gateway.request('/user')).status === 503);
  const { headers, body } = await gateway.request('/user');
  one.isHealthy = true;
  await eventually('the first is back', async () => (await gateway.request('/user')).status === 200);

  assert.deepEqual(await answersOf(20), new Set(['one /api/user']));
  assert.deepEqual(JSON.parse(body), { message: 'No upstream server is available.' });
  assert.deepEqual([headers['retry-after'], headers['x-ratelimit-limit']], ['1', '10000']);
});
