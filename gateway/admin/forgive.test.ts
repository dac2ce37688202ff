import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { sha256, type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';
import { askInTurn } from '@gantry/testing/gateway/worker-processes.ts';
import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

import { override } from './client.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());

const settings: Settings = {
  upstream: upstream.url,
  limits: { anonymous: 2 },
  ban: { refusals: 2, banSeconds: 6000 },
};

describe('forgive', { concurrency: true }, () => {
  test('a forgiven caller may ask again at once, a ban and the memory of it included', async () => {
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

test("limits shows a caller's limits and the rest of each", async () => {
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

test('limits shows the limits that the tokens of a caller have', async () => {
  upstream.on('/introspect', (_req, res) => {
    const app = { owner: { id: '7', enterprise: true } };
    res.end(JSON.stringify({ active: true, kind: 'app-user', user: '42', app }));
  });
  await using gateway = await TestGateway.start({ upstream: upstream.url, workers: 2 });
  writeFileSync(join(gateway.folder, 'credential'), 'Bearer of-the-gateway\n');
  await gateway.reload({
    upstream: upstream.url,
    workers: 2,
    introspection: { url: `${upstream.url}/introspect`, authorizationFile: '{folder}/credential' },
    networks: [{ name: 'office', ranges: ['127.9.0.0/16', '2001:db8::/32'], limit: 1000 }],
    identities: {
      users: { ada: {} },
      orgs: { corp: { enterprise: true } },
      apps: { app: { kind: 'platform', owner: 'corp' } },
      tokens: [
        { sha256: sha256('personal'), user: 'ada' },
        { sha256: sha256('of-app'), user: 'ada', app: 'app' },
      ],
    },
  });
  const { headers } = await gateway.request('/user', { token: 'of-the-forge' });

  const coreOf = async (key: string): Promise<string[]> => {
    const { output } = await gateway.cli('limits', key);
    return [...output.matchAll(/^core +(\d+)/gm)].map(([, limit = '']) => limit);
  };
  const keys = ['user:42', 'user:ada', 'user:unknown', 'ip:127.9.3.4', 'ip:2001:db8:1:2/64', 'ip:127.0.0.1'];

  assert.equal(headers['x-ratelimit-limit'], '15000');
  assert.deepEqual(await Promise.all(keys.map(coreOf)), [
    ['15000'],
    ['5000', '15000'],
    ['5000'],
    ['1000'],
    ['1000'],
    ['60'],
  ]);
});

test('single callers have other limits, by the file and until the next start by the operator', async () => {
  for (const workers of [1, 2]) {
    await using gateway = await TestGateway.start({
      upstream: upstream.url,
      workers,
      limits: { anonymous: 60 },
      overrides: { 'user:ci': { limit: 7, secondary: 2 }, 'ip:127.6.0.1': { limit: 9 } },
      secondary: { restPoints: { limit: 3 } },
      identities: { users: { ci: {} }, tokens: [{ sha256: sha256('of-ci'), user: 'ci' }] },
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

test('overrides at the same time, beside reloads, are all in force', async () => {
  await using gateway = await TestGateway.start({ upstream: upstream.url, workers: 2 });
  const callers = Array.from({ length: 12 }, (_, n) => `127.8.0.${n + 1}`);

  const reloads = [gateway.reload(gateway.settings), gateway.reload(gateway.settings)];
  await Promise.all(callers.map(async (from, n) => await overrideLimit(gateway, `ip:${from}`, 100 + n)));
  await Promise.all(reloads);

  const limits: (string | undefined)[] = [];
  for (const from of callers) limits.push((await gateway.request('/user', { from })).headers['x-ratelimit-limit']);
  assert.deepEqual(
    limits,
    callers.map((_, n) => String(100 + n)),
  );
});

test('an override counts in all gateways on one Redis, in later ones too, until it is taken away', async () => {
  await using redis = await TestRedis.start();
  const shared: Settings = { upstream: upstream.url, store: { kind: 'redis', url: redis.url } };
  await using first = await TestGateway.start(shared);
  await using second = await TestGateway.start({ ...shared, workers: 2 });
  const limitAt = async (gateway: TestGateway) => (await gateway.request('/user')).headers['x-ratelimit-limit'];
  const all = async (limit: string): Promise<void> => {
    for (const gateway of [first, second]) {
      await eventually(`the limit is ${limit}`, async () => (await limitAt(gateway)) === limit);
    }
  };

  await overrideLimit(first, 'ip:127.0.0.1', 777);
  const atOnce = await limitAt(first);
  await all('777');
  await Promise.all([overrideLimit(first, 'ip:127.0.0.2', 5), overrideLimit(second, 'ip:127.0.0.3', 6)]);
  await using third = await TestGateway.start(shared);
  await eventually('a later one knows', async () => (await limitAt(third)) === '777');
  const lines = await Promise.all(['ip:127.0.0.2', 'ip:127.0.0.3'].map(async (key) => await third.cli('limits', key)));
  await second.cli('override', 'ip:127.0.0.1');
  await all('60');
  await redis.kill();
  const away = await first.cli('override', 'ip:127.0.0.1', '--limit', '9');

  assert.equal(atOnce, '777');
  assert.deepEqual(
    lines.map(({ output }) => /core +(\d+)/.exec(output)?.[1]),
    ['5', '6'],
  );
  assert.equal(away.code, 1);
  assert.match(away.output, /redis/);
});

/** As `gantry gateway override` does it, without a process for each. */
async function overrideLimit(gateway: TestGateway, key: string, limit: number): Promise<void> {
  await override(gateway.adminSocket, key, { limit });
}
