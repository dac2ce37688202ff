import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';

import { runGatewayCommand, type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());

const settings: Settings = {
  upstream: upstream.url,
  limits: { anonymous: 100 },
  categories: { search: { limit: 2, windowSeconds: 3600, window: 'sliding' } },
  secondary: { restPoints: { limit: 1 } },
  shadowRoutes: [
    { route: 'GET /search/**' },
    { route: 'GET /search/users', limits: ['points'] },
    { route: 'POST /graphql', limits: ['points'] },
  ],
};

describe('a limit on trial', () => {
  for (const workers of [1, 2]) {
    test(`is only counted and logged on its route, with ${workers} processes`, async () => {
      await using gateway = await TestGateway.start({ ...settings, workers });

      const trial = [];
      for (let n = 0; n < 3; n += 1) trial.push(await gateway.request('/search/issues'));
      const elsewhere = [await gateway.request('/user'), await gateway.request('/user')];
      const metrics = await gateway.metrics();
      const line = await gateway.logged('would have been refused');

      assert.deepEqual(
        trial.map(({ status }) => status),
        [200, 200, 200],
      );
      assert.deepEqual(
        elsewhere.map(({ status }) => status),
        [200, 403],
      );
      assert.equal(metrics.get('gantry_gateway_requests_shadowed_total{limit="points"}'), 2);
      assert.equal(metrics.get('gantry_gateway_requests_shadowed_total{limit="primary"}'), 1);
      assert.deepEqual([line['limit'], line['endpoint']], ['points', 'GET /search/issues']);
    });
  }

  test('refuses by the others; the more exact route counts', async () => {
    await using gateway = await TestGateway.start(settings);
    const found = [];
    for (let n = 0; n < 3; n += 1) found.push(await gateway.request('/search/users'));
    const query = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"query":"{ a }"}' };
    await using small = await TestGateway.start({ ...settings, secondary: { graphqlPoints: { limit: 0 } } });
    const graphql = await small.request('/graphql', query);
    const tricked = await gateway.request('/user/..;/search/issues');

    assert.deepEqual(
      found.map(({ status }) => status),
      [200, 200, 403],
    );
    assert.equal(graphql.status, 200);
    assert.equal(tricked.status, 400);
  });
});

test('a sliding quota tells when the first of it comes back', async () => {
  await using gateway = await TestGateway.start({ ...settings, shadowRoutes: [] });
  const before = Math.floor(Date.now() / 1000);

  const { headers } = await gateway.request('/search/issues');
  const limits = await gateway.cli('limits', 'ip:127.0.0.1');

  const reset = Number(headers['x-ratelimit-reset']);
  assert.equal(reset % 300, 0, 'of an hour five minutes count together');
  assert.ok(reset > before + 3600 && reset <= before + 3600 + 600);
  assert.match(limits.output, /^search +2 +1 +1 /m);
});

test('a problem of theirs is told with its place', async () => {
  await using gateway = await TestGateway.start(settings);
  gateway.write({
    ...settings,
    shadowRoutes: [{ route: 'search' }],
    secondary: { window: 'moving' as 'fixed' },
  });

  const { code, output } = await runGatewayCommand('--check-config', gateway.file);

  assert.equal(code, 1);
  assert.match(output, /shadowRoutes\.0\.route: "GET \/path\/\{name\}" is expected/);
  assert.match(output, /secondary\.window: must be one of fixed, sliding/);
});
