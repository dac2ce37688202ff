import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';

import { TestRedis } from '@gantry/limiter/redis/testing/test-redis.ts';

import { eventually } from '../tests/eventually.ts';
import { sha256, type Settings, TestGateway } from '../tests/test-gateway.ts';
import { TestUpstream } from '../tests/test-upstream.ts';
import { askInTurn } from '../tests/worker-processes.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());

const settings: Settings = {
  upstream: upstream.url,
  limits: { anonymous: 2 },
  ban: { refusals: 2, withinSeconds: 600, banSeconds: 6000 },
};

describe('forgive', { concurrency: true }, () => {
  test('who is forgiven may ask again at once, a ban and what is remembered of it included', async () => {
    for (const store of [{ kind: 'memory' }, { kind: 'sqlite', path: '{folder}/limits.db' }] as const) {
      await using gateway = await TestGateway.start({ ...settings, store });
      for (let n = 0; n < 6; n += 1) await gateway.request('/user');
      const before = await gateway.request('/user');

      const told = await gateway.cli('forgive', 'ip:127.0.0.1');

      const again = await gateway.request('/user');
      assert.deepEqual(told, { code: 0, output: '' });
      assert.deepEqual([before.status, again.status, again.headers['x-ratelimit-used']], [403, 200, '1']);
      assert.equal((await gateway.cli('explain')).output, 'Nobody is limited now.\n');
    }
  });

  test('all gateways on one Redis forgive, whichever was told', async () => {
    await using redis = await TestRedis.start();
    const shared: Settings = { ...settings, store: { kind: 'redis', url: redis.url } };
    await using first = await TestGateway.start(shared);
    await using second = await TestGateway.start(shared);
    for (let n = 0; n < 4; n += 1) for (const gateway of [first, second]) await gateway.request('/user');
    const before = [await first.request('/user'), await second.request('/user')];

    await second.cli('forgive', 'ip:127.0.0.1');

    await eventually('the first one knows', async () => (await first.request('/user')).status === 200);
    const after_ = await second.request('/user');
    assert.deepEqual(
      [...before, after_].map(({ status }) => status),
      [403, 403, 200],
    );
    assert.equal(after_.headers['x-ratelimit-used'], '2');
  });

  test('all workers forgive', async () => {
    await using gateway = await TestGateway.start({ ...settings, workers: 2 });
    await askInTurn(20, gateway);

    await gateway.cli('forgive', 'ip:127.0.0.1');

    const statuses = (await askInTurn(2, gateway)).map(({ status }) => status);
    assert.deepEqual(statuses, [200, 200]);
  });
});

test('limits says what a caller may and what is left', async () => {
  await using gateway = await TestGateway.start({
    ...settings,
    limits: { anonymous: 60 },
    categories: { search: { limit: 30, windowSeconds: 60, anonymousLimit: 10 } },
    secondary: { contentPerHour: { limit: 'off' } },
  });
  await gateway.request('/repos/o/r/issues', { method: 'POST' });

  const { output } = await gateway.cli('limits', 'ip:127.0.0.1');
  const json = JSON.parse((await gateway.cli('limits', 'user:7', '--json')).output) as {
    name: string;
    limit: number;
  }[];

  const rows = output.split('\n').map((line) => line.split(/ {2,}/).slice(0, 4));
  assert.deepEqual(rows[0], ['LIMIT', 'OF', 'USED', 'LEFT']);
  for (const row of [
    ['core', '60', '1', '59'],
    ['search', '10', '0', '10'],
    ['concurrent', '100', '0', '100'],
    ['content-minute', '80', '1', '79'],
    ['content-hour', 'off', '1', 'off'],
    ['points POST /repos/{}/{}/issues', '900', '5', '895'],
  ]) {
    assert.deepEqual(
      rows.find(([name]) => name === row[0]),
      row,
    );
  }
  assert.equal(json.find(({ name }) => name === 'core')?.limit, 5000);
});

test('single callers have other limits, by the file and until the next start by the operator', async () => {
  for (const workers of [1, 2]) {
    await using gateway = await TestGateway.start({
      upstream: upstream.url,
      workers,
      limits: { anonymous: 60 },
      overrides: { 'user:ci': { limit: 7, secondary: 2 }, 'ip:127.6.0.1': { limit: 9 } },
      secondary: { restPoints: { limit: 3 } },
      identities: { users: { ci: {} }, tokens: [{ sha256: sha256('of-ci'), kind: 'personal', user: 'ci' }] },
    });
    const statuses: number[] = [];
    for (let n = 0; n < 7; n += 1) statuses.push((await gateway.request('/user', { token: 'of-ci' })).status);
    const other = await gateway.request('/user', { from: '127.6.0.1' });

    const put = await gateway.cli('override', 'user:ci', '--limit', '100', '--secondary', 'off');
    const wrong = await gateway.cli('override', 'user:ci', '--limit', '9999999999');
    const raised = await gateway.request('/user', { token: 'of-ci' });
    await gateway.reload(gateway.settings);
    const kept = await gateway.request('/user', { token: 'of-ci' });
    await gateway.cli('override', 'user:ci');
    const back = await gateway.request('/user', { token: 'of-ci' });

    assert.deepEqual(statuses, [200, 200, 200, 200, 200, 200, 403], 'twice the points of others');
    assert.equal(other.headers['x-ratelimit-limit'], '9');
    assert.deepEqual([put.code, wrong.code], [0, 1]);
    assert.match(wrong.output, /overrides\.user:ci\.limit: must be <= 1000000000/);
    assert.deepEqual([raised.status, raised.headers['x-ratelimit-limit']], [200, '100']);
    assert.deepEqual([kept.status, kept.headers['x-ratelimit-limit']], [200, '100']);
    assert.deepEqual([back.status, back.headers['x-ratelimit-limit']], [403, '7']);
  }
});
