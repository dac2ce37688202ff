import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { RawClient } from '@gantry/testing/gateway/raw-client.ts';
import { TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../../admin/client.ts';

async function underWay(gateway: TestGateway, address = '127.0.0.1'): Promise<number> {
  return (await askCaller(gateway.adminSocket, `ip:${address}`)).underWay;
}

const upstream = await TestUpstream.start();
const gateway = await TestGateway.start({ upstream: upstream.url });
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const moments = {
  'before the answer': 'GET /held HTTP/1.1\r\nHost: a\r\n\r\n',
  'in the middle of its request': `POST /held HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n${'x'.repeat(1_500_000)}`,
  'in the middle of the answer': 'GET /endless HTTP/1.1\r\nHost: a\r\n\r\n',
  'with more requests behind the first': 'GET /held HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(5),
} as const;

let addresses = 1;
for (const [what, request] of Object.entries(moments)) {
  for (const how of ['destroy', 'resetAndDestroy', 'end'] as const) {
    test(`a client that leaves ${what} (${how}) frees its places at once, and the upstream`, async () => {
      addresses += 1;
      const address = `127.0.0.${addresses}`;
      const held = upstream.hold('/held');
      upstream.on('/endless', (_req, res) => void res.write('x'));
      const wanted = request.match(/HTTP/g)?.length ?? 0;
      const [before, received] = [await gateway.metrics(), upstream.received.length];
      using client = await RawClient.connect(gateway, address);
      client.send(request);
      await upstream.until(() => upstream.received.length === received + wanted);
      const during = await underWay(gateway, address);

      client.socket[how]();

      assert.equal(during, wanted);
      await eventually('nothing is under way', async () => (await underWay(gateway, address)) === 0);
      await upstream.until(() => held.waiting() === 0);
      const metrics = await gateway.metrics();
      const growth = (name: string): number =>
        (metrics.get(`gantry_gateway_${name}`) ?? 0) - (before.get(`gantry_gateway_${name}`) ?? 0);
      assert.equal(metrics.get('gantry_gateway_requests_under_way'), 0);
      assert.equal(growth('clients_gone_total'), wanted);
      assert.equal(growth('upstream_failures_total{kind="broken"}'), 0);
      assert.deepEqual(
        gateway.log.filter(({ level }) => level >= 50),
        [],
      );
    });
  }
}

test('a client that stops reading is left when nothing has moved for the idle time', async () => {
  let left = false;
  upstream.on('/flood', (_req, res) => {
    res.once('close', () => (left = true));
    const more = (): void => {
      while (!res.destroyed && res.write('x'.repeat(65_536)));
    };
    res.on('drain', more);
    more();
  });
  await using strict = await TestGateway.start({ upstream: upstream.url, timeouts: { idleMs: 500 } });
  using client = await RawClient.connect(strict);
  client.send('GET /flood HTTP/1.1\r\nHost: a\r\n\r\n');
  await client.until('\r\n\r\n');
  client.socket.pause();

  await eventually('its place is free', async () => (await underWay(strict)) === 0);

  await eventually('the upstream is left', () => left);
});
