import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';

import { eventually } from '@gantry/testing/eventually.ts';
import { RawClient } from '@gantry/testing/gateway/raw-client.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';
import { growthBy, leastOf } from '@gantry/testing/memory/bytes-in-use.ts';

import { readConfig } from '../config/read.ts';
import { GatewayLog } from '../log.ts';
import { startService } from '../run.ts';

const ROUNDS = 100;
/** A batch's growth is compiled code, which may be given up again: from -200 to 350 bytes for each connection. */
const BATCHES = 12;

const head = 'Host: a\r\n';

/** Each is sent on a connection of its own, which is then left; at once where there is no answer to wait for. */
const hostile: readonly (readonly [request: string, waits: boolean])[] = [
  ['rubbish\r\n\r\n', true],
  [`GET / HTTP/1.1\r\n${head}X: ${'x'.repeat(40_000)}\r\n\r\n`, true],
  [`POST / HTTP/1.1\r\n${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, true],
  [`POST /a HTTP/1.1\r\n${head}Transfer-Encoding: chunked\r\n\r\nnonsense\r\n`, true],
  [`CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n`, true],
  [`GET /%00 HTTP/1.1\r\n${head}Authorization: Bearer ${'x'.repeat(5000)}\r\n\r\n`, true],
  [`GET /held HTTP/1.1\r\n${head}\r\nrubbish`, false],
  [`GET /held HTTP/1.1\r\n${head}\r\n`.repeat(5), false],
  [`GET /held HTTP/1.1\r\n${head}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`, false],
  [`POST /graphql HTTP/1.1\r\n${head}Content-Length: 60000\r\n\r\n${'{'.repeat(30_000)}`, false],
  [`POST /held HTTP/1.1\r\n${head}Content-Length: 1000000\r\n\r\n${'x'.repeat(30_000)}`, false],
  [`GET / HTTP/1.1\r\n${head}`, false],
];

test('broken requests and clients that leave take nothing with them', async (t) => {
  await using upstream = await TestUpstream.start();
  upstream.on('/held', () => undefined);
  const settings = { upstream: upstream.url, listen: '127.0.0.1:0', 'limits.anonymous': 10_000_000 };
  const more = { 'secondary.restPoints.limit': 10_000_000, 'log.level': 'silent', 'admin.socket': '' };
  const flags = new Map(Object.entries({ ...settings, ...more }).map(([key, value]) => [key, { flag: key, value }]));
  const config = readConfig(undefined, flags);
  await using service = await startService(config, new GatewayLog(config.log));
  const { hostname: host, port } = new URL(service.addresses[0] ?? '');
  const target = { host, port: Number(port) };
  const attack = async (): Promise<void> => {
    for (let round = 0; round < ROUNDS; round += 1) {
      await Promise.all(
        hostile.map(async ([request, waits]) => {
          using client = await RawClient.connect({ target });
          client.send(request);
          if (waits) await client.answer();
          else await nextTurn();
        }),
      );
    }
    upstream.received.length = 0;
    await eventually('nothing is left', async () => {
      const { underWay, openConnections } = await service.operator.counts();
      return underWay === 0 && openConnections === 0 && upstream.connections.size < 50;
    });
  };
  await attack();

  const connections = ROUNDS * hostile.length;
  const each = await leastOf(BATCHES, 250, async () => (await growthBy(attack)) / connections);

  t.diagnostic(`${each.toFixed(0)} bytes for each of ${connections} connections`);
  assert.ok(each < 250, `${each} bytes for each, in every batch`);
  const { underWay, windows } = await service.operator.caller('ip:127.0.0.1');
  assert.equal(underWay, 0);
  assert.ok(windows.length > 0);
});
