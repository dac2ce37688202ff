import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';

import { type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../admin/client.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());

type Row = readonly [headers: Record<string, string | readonly string[]>, client: string, forwarded: string];

const PROXY = '127.0.0.2';

/** Requests by a trusted proxy: its headers, the address that counts, and X-Forwarded-For at the upstream. */
const suites: readonly (readonly [settings: Settings['clientAddress'], rows: readonly Row[]])[] = [
  [
    { header: 'X-Real-IP' },
    [
      [{ 'x-real-ip': '198.51.100.1' }, '198.51.100.1', `198.51.100.1, ${PROXY}`],
      [{ 'X-REAL-IP': ' 198.51.100.2 ' }, '198.51.100.2', `198.51.100.2, ${PROXY}`],
      [{ 'x-real-ip': '198.51.100.3', 'x-forwarded-for': '203.0.113.9' }, '198.51.100.3', `198.51.100.3, ${PROXY}`],
      [{ 'x-forwarded-for': '203.0.113.9' }, PROXY, PROXY],
      [{ 'x-real-ip': 'unknown' }, PROXY, PROXY],
      [{ 'x-real-ip': '' }, PROXY, PROXY],
      [{ 'x-real-ip': ['198.51.100.4', '198.51.100.5'] }, PROXY, PROXY],
      [{ x_real_ip: '198.51.100.6' }, PROXY, PROXY],
    ],
  ],
  [
    { header: 'cf-connecting-ip' },
    [
      [{ 'cf-connecting-ip': '198.51.101.1' }, '198.51.101.1', `198.51.101.1, ${PROXY}`],
      [{ 'CF-Connecting-IP': '2001:db8:7::1' }, '2001:db8:7::1', `2001:db8:7::1, ${PROXY}`],
    ],
  ],
  [
    { hops: 2 },
    [
      [
        { 'x-forwarded-for': '203.0.113.9, 198.51.102.1, 192.0.2.1' },
        '198.51.102.1',
        `203.0.113.9, 198.51.102.1, 192.0.2.1, ${PROXY}`,
      ],
      [{ 'x-forwarded-for': '198.51.102.2' }, '198.51.102.2', `198.51.102.2, ${PROXY}`],
      [
        { 'x-forwarded-for': '198.51.102.3, banana, 192.0.2.3' },
        '192.0.2.3',
        `198.51.102.3, banana, 192.0.2.3, ${PROXY}`,
      ],
      [{ 'x-forwarded-for': '198.51.102.4, 127.0.0.3' }, '198.51.102.4', `198.51.102.4, 127.0.0.3, ${PROXY}`],
      [{ 'x-forwarded-for': ',' }, PROXY, `,, ${PROXY}`],
    ],
  ],
];
for (const [clientAddress, rows] of suites) {
  describe(`clientAddress ${JSON.stringify(clientAddress)}`, async () => {
    const settings = { upstream: upstream.url, trustProxy: ['127.0.0.2', '127.0.0.3'], clientAddress: clientAddress! };
    const gateway = await TestGateway.start(settings);
    after(async () => await gateway[Symbol.asyncDispose]());
    for (const [headers, client, forwarded] of rows) {
      test(`${JSON.stringify(headers)} is of ${client}`, async () => {
        const before = await used(gateway, client);

        const { status } = await gateway.request('/user', { from: PROXY, headers });

        assert.equal(status, 200);
        assert.equal(await used(gateway, client), before + 1);
        assert.equal(upstream.received.at(-1)?.headers['x-forwarded-for'], forwarded);
      });
    }

    test('a client that is no proxy is not believed, whatever it says', async () => {
      const claims = { 'x-real-ip': '9.9.9.9', 'x-forwarded-for': '9.9.9.9', 'cf-connecting-ip': '9.9.9.9' };

      await gateway.request('/user', { from: '127.0.0.9', headers: claims });

      assert.deepEqual([await used(gateway, '127.0.0.9'), await used(gateway, '9.9.9.9')], [1, 0]);
      const { headers } = upstream.received.at(-1)!;
      assert.equal(headers['x-forwarded-for'], '127.0.0.9');
      assert.equal(JSON.stringify(headers).includes('9.9.9.9'), false);
    });
  });
}

test('X-Forwarded-For from a sender that is none of trustProxy is a warning, once', async () => {
  await using gateway = await TestGateway.start({ upstream: upstream.url, trustProxy: ['127.0.0.2'] });
  const forwarded = { headers: { 'x-forwarded-for': '198.51.103.1' } };
  await gateway.request('/user', { from: '127.0.0.2', ...forwarded });
  await gateway.request('/user', { from: '127.0.0.3' });
  await gateway.request('/user', { from: '127.0.0.4', ...forwarded });
  await gateway.request('/user', { from: '127.0.0.5', ...forwarded });
  gateway.signal('SIGTERM');
  await gateway.exited;

  const warnings = gateway.log.filter(({ msg }) => msg.includes('X-Forwarded-For'));
  assert.deepEqual(
    warnings.map(({ level, peer }) => [level, peer]),
    [[40, '127.0.0.4']],
  );
});

async function used(gateway: TestGateway, address: string): Promise<number> {
  const { windows } = await askCaller(gateway.adminSocket, `ip:${address}`);
  return windows.find(({ name }) => name === 'core')?.used ?? 0;
}
