import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { after, before, suite, test } from 'node:test';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';

import { freePort } from '@gantry/testing/cluster/answering-manager.ts';
import pino from 'pino';
import { Type } from 'typebox';

import { systemClock, type Clock } from '../../lib/clock.ts';
import { EngineError } from '../../lib/errors.ts';
import { issue, newAuthority, newKey } from '../ca/certificates.ts';
import { route, upgrade, WireServer, type Routes } from './server.ts';

const CLUSTER = 'cluster';
/** One for attackers, one for everybody else. */
const [THERE, HERE] = ['127.0.0.2', '127.0.0.1'];
const now = systemClock.now();
const root = newAuthority('root', now);

type Pair = Readonly<{ cert: string; key: string }>;
type Certificate = Readonly<{ name?: string; unit?: string; organization?: string; at?: Temporal.Instant }>;

function certificate(
  { name = 'node', unit = 'swarm-worker', organization = CLUSTER, at = now }: Certificate,
  from = root,
): Pair {
  const { publicKey, privateKey } = newKey();
  const wanted = { subject: { name, unit, organization }, publicKey, now: at, lifeSeconds: 3600 };
  return { cert: issue(from, { ...wanted, dnsNames: ['swarm-manager'] }), key: privateKey };
}

const routes: Routes = {
  'GET /v1/ca': route('anyone', Type.Object({}), async () => await Promise.resolve({})),
  'POST /v1/body': route('anyone', Type.Unknown(), async () => await Promise.resolve({})),
  'POST /v1/node': route('node', Type.Unknown(), async () => await Promise.resolve({})),
  'POST /v1/manager': route('manager', Type.Unknown(), async () => await Promise.resolve({})),
  'POST /v1/never': route('anyone', Type.Unknown(), async () => await Promise.withResolvers().promise),
};

async function listening(port: number, clock: Clock, from = root): Promise<WireServer> {
  const own = certificate({ name: 'self', unit: 'swarm-manager' }, from);
  return await WireServer.open({
    ip: '0.0.0.0',
    port,
    identity: { certificate: own.cert, key: own.key, root: from.certificate, clusterId: CLUSTER },
    routes,
    admits: ({ id, role }, who) => id !== 'removed' && (who === 'node' || role === 'manager'),
    upgrades: {
      '/v1/session': upgrade('node', Type.Object({}), () => {
        throw new EngineError('conflict', 'not here');
      }),
    },
    clock,
    log: pino({ level: 'silent' }),
  });
}

suite('port 2377', { concurrency: true }, () => {
  let server: WireServer;
  let port = 0;
  const open = new Set<Socket>();
  const worker = certificate({});
  const manager = certificate({ name: 'manager', unit: 'swarm-manager' });
  before(async () => {
    port = await freePort();
    server = await listening(port, systemClock);
  });
  after(async () => {
    for (const socket of open) socket.destroy();
    await server[Symbol.asyncDispose]();
  });

  function tcp(localAddress = HERE): Socket {
    const socket = connectTcp({ host: HERE, port, localAddress, allowHalfOpen: true });
    socket.on('error', () => undefined);
    open.add(socket);
    return socket;
  }

  function tls(pair?: Pair, localAddress = HERE, over: object = {}): TLSSocket {
    const target = { host: HERE, port, localAddress, ca: root.certificate, servername: 'swarm-manager' };
    const options: ConnectionOptions & { allowHalfOpen: true } = { ...target, allowHalfOpen: true, ...pair, ...over };
    const socket = connect(options);
    socket.on('error', () => undefined);
    open.add(socket);
    return socket;
  }

  /** The status of an answer; 0: the connection ended without one. */
  async function status(socket: Socket, head: string, body = ''): Promise<number> {
    socket.write(`${head} HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    return await answer(socket);
  }

  async function answer(socket: Socket): Promise<number> {
    const [first] = (await Promise.race(['data', 'end', 'close'].map((event) => on(socket, event)))) as [unknown];
    return Buffer.isBuffer(first) ? Number(/^HTTP\/1\.1 (\d+)/.exec(first.toString())?.[1]) : 0;
  }

  test('strangers of one address keep out no others, and wait for their turn', async () => {
    const idle = Array.from({ length: 32 }, () => tls(undefined, THERE));
    await Promise.all(idle.map(async (socket) => await once(socket, 'secureConnect')));
    const next = tls(undefined, THERE);
    let isIn = false;
    const turn = once(next, 'secureConnect').then(() => (isIn = true));

    assert.equal(await status(tls(), 'GET /v1/ca'), 200);
    assert.equal(isIn, false);
    idle[0]!.destroy();
    await turn;

    for (const socket of [...idle, next]) socket.destroy();
  });

  test('managers behind one address have as many connections as they like', async () => {
    const sockets = Array.from({ length: 100 }, () => tls(manager, '127.0.0.4'));

    await Promise.all(sockets.map(async (socket) => await once(socket, 'secureConnect')));

    for (const socket of sockets) assert.equal(await status(socket, 'POST /v1/manager', '{}'), 200);
    for (const socket of sockets) socket.destroy();
  });

  test('a worker has 32 connections, also beside other workers behind its address', async () => {
    const many = certificate({ name: 'many' });
    const sockets = Array.from({ length: 32 }, () => tls(many, '127.0.0.5'));
    for (const socket of sockets) assert.equal(await status(socket, 'POST /v1/body', '{}'), 200);

    assert.equal(await status(tls(many, '127.0.0.5'), 'POST /v1/body', '{}'), 0);

    assert.equal(await status(tls(worker, '127.0.0.5'), 'POST /v1/node', '{}'), 200);
    for (const socket of sockets) socket.destroy();
  });

  for (const [name, pair, kilobytes, expected] of [
    ['a stranger', undefined, 15, 200],
    ['a stranger', undefined, 17, 400],
    ['a node', worker, 1000, 200],
    ['a node', worker, 1600, 400],
  ] as const) {
    test(`a body of ${kilobytes} KB by ${name} is ${expected}`, async () => {
      const body = JSON.stringify('x'.repeat(kilobytes * 1024));

      assert.equal(await status(tls(pair), 'POST /v1/body', body), expected);
    });
  }

  for (const [name, expected, pair] of [
    ['of a worker', 200, worker],
    ['of another cluster', 403, certificate({ organization: 'other' })],
    ['without a role', 403, certificate({ unit: 'other' })],
    ['of a removed node', 403, certificate({ name: 'removed' })],
    ['that has expired', 403, certificate({ at: now.subtract({ hours: 48 }) })],
    ['that is not yet valid', 403, certificate({ at: now.add({ hours: 48 }) })],
  ] as const) {
    test(`a certificate ${name} is ${expected}`, async () => {
      assert.equal(await status(tls(pair), 'POST /v1/node', '{}'), expected);
    });
  }

  for (const [name, hours] of [
    ['that has expired', -21 * 365 * 24],
    ['that is not yet valid', 48],
  ] as const) {
    test(`a certificate of a root ${name} is 403`, async () => {
      await using parts = new AsyncDisposableStack();
      const from = newAuthority('root', now.add({ hours }));
      const own = await freePort();
      parts.use(await listening(own, systemClock, from));
      const over = { port: own, rejectUnauthorized: false };

      assert.equal(await status(tls(certificate({}, from), HERE, over), 'POST /v1/node', '{}'), 403);
      assert.equal(await status(tls(undefined, HERE, over), 'GET /v1/ca'), 200);
    });
  }

  test("a worker's certificate opens no route of managers", async () => {
    assert.equal(await status(tls(worker), 'POST /v1/manager', '{}'), 403);
  });

  test('a certificate counts while the clock says so, also on an open connection', async () => {
    await using parts = new AsyncDisposableStack();
    let hours = 0;
    const later = await freePort();
    parts.use(await listening(later, { ...systemClock, now: () => systemClock.now().add({ hours }) }));
    const socket = tls(worker, HERE, { port: later });
    assert.equal(await status(socket, 'POST /v1/node', '{}'), 200);

    hours = 2;
    assert.equal(await status(socket, 'POST /v1/node', '{}'), 403);
    hours = -3;
    assert.equal(await status(tls(worker, HERE, { port: later }), 'POST /v1/node', '{}'), 403);
    hours = 0;
    assert.equal(await status(tls(worker, HERE, { port: later }), 'POST /v1/node', '{}'), 200);
  });

  const session = 'POST /v1/session HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: gantry-session\r\n\r\n';
  /** Connections that the server ends by itself; the client never does. */
  const ENDING: readonly (readonly [name: string, begin: () => Socket])[] = [
    ['without a byte', () => tcp('127.0.0.6')],
    ['amid its handshake', () => begun(tcp('127.0.0.6'), Buffer.from([22, 3, 1, 2, 0, 1]))],
    ['that speaks HTTP', () => begun(tcp('127.0.0.6'), 'GET /v1/ca HTTP/1.1\r\nHost: x\r\n\r\n')],
    ['that sends random bytes', () => begun(tcp('127.0.0.6'), Buffer.from('ff00'.repeat(1000), 'hex'))],
    ['by TLS 1.2', () => tls(worker, '127.0.0.6', { maxVersion: 'TLSv1.2' })],
    ['without a request', () => tls(undefined, '127.0.0.6')],
    ['of a node without a request', () => tls(worker, '127.0.0.6')],
    ['amid a head', () => begun(tls(undefined, '127.0.0.6'), 'POST /v1/body HTTP/1.1\r\n')],
    ['amid a body', () => begun(tls(undefined, '127.0.0.6'), post('/v1/body', 10_000, 'x'))],
    ['of a node amid a body', () => begun(tls(worker, '127.0.0.6'), post('/v1/body', 1e6, 'x'))],
    ['with an answer', () => begun(tls(undefined, '127.0.0.6'), post('/v1/body', 2, '{}'))],
    ['that is refused', () => begun(tls(undefined, '127.0.0.6'), post('/v1/node', 2, '{}'))],
    ['of a stranger who waits for an answer', () => begun(tls(undefined, '127.0.0.6'), post('/v1/never', 2, '{}'))],
    ['with pipelined requests', () => begun(tls(worker, '127.0.0.6'), post('/v1/never', 2, '{}').repeat(2))],
    ['whose upgrade is refused', () => begun(tls(worker, '127.0.0.6'), session)],
    ['whose upgrade has no certificate', () => begun(tls(undefined, '127.0.0.6'), session)],
  ];

  for (const [name, begin] of ENDING) {
    test(`a connection ${name} is ended`, async () => {
      const socket = begin();

      await ended(socket);
    });
  }

  function post(path: string, length: number, body: string): string {
    return `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n${body}`;
  }
});

/** Resolves when the other side takes nothing more: a half-closed one still would. */
async function ended(socket: Socket): Promise<void> {
  let beats: NodeJS.Timeout | undefined;
  socket.resume().once('end', () => (beats = setInterval(() => socket.write(' '), 50)));
  await on(socket, 'close');
  clearInterval(beats);
}

/** Like `once`, also where an error comes first. */
async function on(socket: Socket, event: string): Promise<unknown[]> {
  const { promise, resolve } = Promise.withResolvers<unknown[]>();
  socket.once(event, (...values: unknown[]) => resolve(values));
  return await promise;
}

function begun(socket: Socket, bytes: string | Buffer): Socket {
  socket.write(bytes);
  return socket;
}
