import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, test } from 'node:test';

import { RateLimiter } from '@gantry/limiter/limiter.ts';
import { callerFrom } from '@gantry/limiter/primary.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { newCounts } from '../metrics.ts';
import { NearestCallers } from './nearest-callers.ts';
import { prometheusText } from './prometheus.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());

async function nearestOf(gateway: TestGateway): Promise<Record<string, number>> {
  const metrics = [...(await gateway.metrics())].filter(([name]) => name.includes('caller_used_ratio'));
  return Object.fromEntries(
    metrics.map(([name, value]) => [name.replace('gantry_gateway_caller_used_ratio', ''), value]),
  );
}

for (const workers of [1, 2]) {
  test(`caller_used_ratio has the callers from half of their limits on, the nearest first (${workers} workers)`, async () => {
    await using gateway = await TestGateway.start({
      upstream: upstream.url,
      workers,
      limits: { anonymous: 10 },
      categories: { search: { limit: 4 } },
    });
    const ask = async (from: string, times: number, path = '/user'): Promise<void> => {
      for (let n = 0; n < times; n += 1) await gateway.request(path, { from });
    };

    await ask('127.0.0.2', 4);
    await ask('127.0.0.3', 5);
    await ask('127.0.0.4', 12);
    await ask('127.0.0.5', 6);
    await ask('127.0.0.5', 3, '/search/users');
    const found = await nearestOf(gateway);
    await gateway.cli('forgive', 'ip:127.0.0.4');

    assert.deepEqual(Object.entries(found), [
      ['{caller="ip:127.0.0.4",resource="core"}', 1],
      ['{caller="ip:127.0.0.5",resource="search"}', 0.75],
      ['{caller="ip:127.0.0.3",resource="core"}', 0.5],
    ]);
    await eventually('the forgiven caller is gone', async () => {
      const left = await nearestOf(gateway);
      return Object.keys(left).length === 2;
    });
  });
}

test('labels name callers by their ids, whatever is in these, and hold no credential', async () => {
  const forge = createServer((_, response) => response.end(JSON.stringify({ id: 'a"b\\c' })));
  await using _forge = { [Symbol.asyncDispose]: async () => void forge.close() };
  await new Promise<void>((resolve) => forge.listen(0, '127.0.0.1', resolve));
  const address = forge.address();
  assert.ok(typeof address === 'object' && address !== null);
  await using gateway = await TestGateway.start({
    upstream: upstream.url,
    limits: { user: 1 },
    introspection: { url: `http://127.0.0.1:${address.port}/user` },
  });

  await gateway.request('/user', { token: 'ghp_secret' });
  const metrics = await gateway.metrics();

  const names = [...metrics.keys()].filter((name) => name.includes('caller='));
  assert.deepEqual(names, [String.raw`gantry_gateway_caller_used_ratio{caller="user:a\"b\\c",resource="core"}`]);
  assert.ok([...metrics.keys()].every((name) => !name.includes('secret')));
  forge.closeAllConnections();
});

test('a flood of callers leaves twenty, those nearest to their limits', async () => {
  await using limiter = new RateLimiter();
  const endpoint = limiter.endpoint({ name: 'GET /' });
  const nearest = new NearestCallers();
  const note = async (n: number, times: number): Promise<void> => {
    const caller = { ...callerFrom({ kind: 'user', userId: String(n) }), limit: 4 };
    for (let time = 0; time < times; time += 1) nearest.note(await limiter.admit(caller, endpoint, 0));
  };

  for (let n = 0; n < 20; n += 1) await note(n, 4);
  for (let n = 20; n < 5000; n += 1) await note(n, 2);
  const text = prometheusText(newCounts(limiter.counts), nearest.list());

  assert.deepEqual(
    nearest.list().map(({ key, ratio }) => [key, ratio]),
    Array.from({ length: 20 }, (_, n) => [`user:${n}`, 1]),
  );
  assert.equal(text.split('\n').filter((line) => line.startsWith('gantry_gateway_caller_used_ratio{')).length, 20);
});
