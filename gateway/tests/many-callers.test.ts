import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { test } from 'node:test';

import { MemoryStore } from '@gantry/limiter/memory/store.ts';
import { bytesInUse, growthBy, leastOf } from '@gantry/testing/memory/bytes-in-use.ts';

import { readConfig } from '../config/read.ts';
import { GatewayLog } from '../log.ts';
import { startGateway } from '../start.ts';

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

const ATTEMPTS = 5;

test('a caller costs some hundred bytes', async (t) => {
  const each = await leastOf(ATTEMPTS, 400, async () => {
    await using gateway = await startTrusting(60);
    await askFromEach(gateway.port, WARM_UP, () => '192.0.2.1');

    const bytes = await growthBy(async () => await askFromEach(gateway.port, CALLERS, ipv4(10)));

    assert.equal(gateway.store.size, CALLERS + 1);
    return bytes / CALLERS;
  });

  t.diagnostic(`${each.toFixed(0)} bytes for each of ${CALLERS} callers`);
  assert.ok(each < 400, `${each} bytes for each`);
});

test('a caller costs nothing when its windows are over', async () => {
  await using gateway = await startTrusting(60);
  let first = 9;
  const others = async (): Promise<void> => {
    gateway.pass(7200);
    first += 1;
    await askFromEach(gateway.port, CALLERS / 2, ipv4(first));
  };
  await others();

  const each = await leastOf(ATTEMPTS, 40, async () => (await growthBy(others)) / (CALLERS / 2));

  assert.ok(gateway.store.size <= CALLERS / 2 + 1, `${gateway.store.size} callers are remembered`);
  assert.ok(each < 40, `${each} bytes are kept of each caller before`);
});

test('a refused caller costs some hundred bytes, and as many as there are cost no more than 100,000 do', async (t) => {
  let first = 0;
  let second = 0;
  const each = await leastOf(ATTEMPTS, 600, async () => {
    await using gateway = await startTrusting(0);
    await askFromEach(gateway.port, WARM_UP, () => '192.0.2.1');
    const before = await bytesInUse();

    await askFromEach(gateway.port, CALLERS, ipv4(10));
    first = (await bytesInUse()) - before;
    await askFromEach(gateway.port, CALLERS / 2, ipv4(11));
    second = (await bytesInUse()) - before;

    assert.equal(gateway.store.size, 0);
    assert.equal((await gateway.operator.limited()).length, CALLERS);
    return Math.max(first, second / 1.2) / CALLERS;
  });

  t.diagnostic(`${each.toFixed(0)} bytes for each of ${CALLERS} callers`);
  assert.ok(each < 600, `${first} bytes, ${second} with more callers`);
});

test('all addresses of one IPv6 network are one caller', async () => {
  await using gateway = await startTrusting(1_000_000);

  await askFromEach(gateway.port, WARM_UP, (n) => `2001:db8::${n.toString(16)}`);

  assert.equal(gateway.store.size, 1);
});
