import assert from 'node:assert/strict';
import { test } from 'node:test';

import { askCaller } from '../admin/client.ts';
import { eventually } from '../tests/eventually.ts';
import { RawClient } from '../tests/raw-client.ts';
import { TestGateway } from '../tests/test-gateway.ts';
import { TestUpstream } from '../tests/test-upstream.ts';

async function underWay(gateway: TestGateway): Promise<number> {
  return (await askCaller(gateway.adminSocket, 'ip:127.0.0.1')).underWay;
}

for (const [what, request] of [
  ['before the answer', 'GET /held HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['in the middle of its request', 'POST /held HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf'],
  ['in the middle of the answer', 'GET /endless HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['with more requests behind the first', 'GET /held HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(5)],
] as const) {
  for (const how of ['destroy', 'resetAndDestroy', 'end'] as const) {
    test(`a client that leaves ${what} (${how}) frees its places at once, and the upstream`, async () => {
      await using upstream = await TestUpstream.start();
      const held = upstream.hold('/held');
      upstream.on('/endless', (_req, res) => void res.write('x'));
      const wanted = request.match(/HTTP/g)?.length ?? 0;
      await using gateway = await TestGateway.start({ upstream: upstream.url });
      using client = await RawClient.connect(gateway);
      client.send(request);
      await upstream.until(() => upstream.received.length === wanted);
      const during = await underWay(gateway);

      client.socket[how]();

      assert.equal(during, wanted);
      await eventually('nothing is under way', async () => (await underWay(gateway)) === 0);
      await upstream.until(() => held.waiting() === 0);
      const metrics = await gateway.metrics();
      assert.equal(metrics.get('gantry_gateway_requests_under_way'), 0);
      assert.equal(metrics.get('gantry_gateway_clients_gone_total'), wanted);
      assert.equal(metrics.get('gantry_gateway_upstream_failures_total{kind="broken"}'), 0);
      assert.deepEqual(
        gateway.log.filter(({ level }) => level >= 50),
        [],
      );
    });
  }
}
