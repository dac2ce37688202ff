import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test, type TestContext } from 'node:test';

import { MemoryStore } from '@gantry/limiter/memory/store.ts';

import { readConfig } from '../config/read.ts';
import { GatewayLog } from '../log.ts';
import { startGateway } from '../start.ts';
import { bytesInUse } from './bytes-in-use.ts';

const CALLERS = 100_000;
const CONNECTIONS = 8;
const AT_ONCE = 125;
/** So many from one address, before memory is measured. */
const WARM_UP = 10_000;

/** A gateway in this process that believes X-Forwarded-For from loopback, with a clock that the test moves. */
async function startTrusting(anonymousLimit: number) {
  let nowMs = Date.now();
  const store = new MemoryStore({ now: () => nowMs });
  const settings = {
    upstream: 'http://127.0.0.1:1',
    listen: '127.0.0.1:0',
    trustProxy: ['127.0.0.0/8'],
    'limits.anonymous': anonymousLimit,
    'log.level': 'silent',
  };
  const flags = new Map(Object.entries(settings).map(([key, value]) => [key, { flag: key, value }]));
  const config = readConfig(undefined, flags);
  const service = await startGateway(config, new GatewayLog(config.log), store);
  return {
    store,
    port: Number(new URL(service.addresses[0] ?? '').port),
    operator: service.operator,
    pass: (seconds: number) => (nowMs += seconds * 1000),
    [Symbol.asyncDispose]: async () => await service[Symbol.asyncDispose](),
  };
}

/** One request from each address. An unknown version of the API is answered by the gateway, after it was counted. */
async function askFromEach(port: number, count: number, addressOf: (n: number) => string): Promise<void> {
  const perConnection = count / CONNECTIONS;
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async (_, connection) => {
      const socket = connect(port, '127.0.0.1');
      let answered = 0;
      let rest = '';
      for (let sent = 0; sent < perConnection; sent += AT_ONCE) {
        let requests = '';
        for (let n = sent; n < sent + AT_ONCE; n += 1) {
          const address = addressOf(connection * perConnection + n);
          requests += `GET /user HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${address}\r\nX-Platform-Api-Version: 1999-01-01\r\n\r\n`;
        }
        socket.write(requests);
        while (answered < sent + AT_ONCE) {
          const [data] = (await once(socket, 'data')) as [Buffer];
          const parts = (rest + data.toString('latin1')).split('HTTP/1.1 4');
          answered += parts.length - 1;
          rest = parts.at(-1)!.slice(-20);
        }
      }
      socket.destroy();
    }),
  );
}

function ipv4(first: number): (n: number) => string {
  return (n) => `${first}.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;
}

function perCaller(t: TestContext, what: string, bytes: number): number {
  const each = bytes / CALLERS;
  t.diagnostic(`${what}: ${each.toFixed(0)} bytes for each of ${CALLERS} callers`);
  return each;
}

test('a caller costs some hundred bytes, and nothing when its windows are over', async (t) => {
  await using gateway = await startTrusting(60);
  const { store, port } = gateway;
  await askFromEach(port, WARM_UP, () => '192.0.2.1');
  const before = await bytesInUse();

  await askFromEach(port, CALLERS, ipv4(10));
  const sizeFirst = store.size;
  const first = await bytesInUse();
  gateway.pass(7200);
  await askFromEach(port, CALLERS, ipv4(11));
  const sizeSecond = store.size;
  const second = await bytesInUse();

  assert.equal(sizeFirst, CALLERS + 1);
  assert.ok(perCaller(t, 'admitted', first - before) < 400);
  assert.ok(sizeSecond <= CALLERS + 1, `${sizeSecond} callers are remembered`);
  assert.ok(second - before < (first - before) * 1.2, `${second - before} bytes after ${first - before}`);
});

test('a refused caller costs some hundred bytes, and as many as there are cost no more than 100,000 do', async (t) => {
  await using gateway = await startTrusting(0);
  const { store, port } = gateway;
  await askFromEach(port, WARM_UP, () => '192.0.2.1');
  const before = await bytesInUse();

  await askFromEach(port, CALLERS, ipv4(10));
  const first = await bytesInUse();
  await askFromEach(port, CALLERS / 2, ipv4(11));
  const second = await bytesInUse();

  assert.equal(store.size, 0);
  assert.ok(perCaller(t, 'refused', first - before) < 600);
  assert.ok(second - before < (first - before) * 1.2, `${second - before} bytes after ${first - before}`);
  assert.equal((await gateway.operator.limited()).length, CALLERS);
});

test('all addresses of one IPv6 network are one caller', async () => {
  await using gateway = await startTrusting(1_000_000);

  await askFromEach(gateway.port, WARM_UP, (n) => `2001:db8::${n.toString(16)}`);

  assert.equal(gateway.store.size, 1);
});
