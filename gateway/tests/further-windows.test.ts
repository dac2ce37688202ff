import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { type Answer, type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';
import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());
const redis = await TestRedis.start();
after(async () => await redis[Symbol.asyncDispose]());

/** A day that ends during the test does no harm: windows begin with the first request. */
const DAY_SECONDS = 86_400;

function numbersOf({ headers }: Answer): number[] {
  return ['limit', 'used', 'remaining'].map((name) => Number(headers[`x-ratelimit-${name}`]));
}

const kinds: readonly (readonly [name: string, Settings])[] = [
  ['memory', {}],
  ['two workers', { workers: 2 }],
  ['SQLite', { store: { kind: 'sqlite', path: '{folder}/counts.db' } }],
  ['Redis', { store: { kind: 'redis', url: redis.url, prefix: 'one:' } }],
  ['two workers with Redis', { workers: 2, store: { kind: 'redis', url: redis.url, prefix: 'two:' } }],
];
for (const [name, own] of kinds) {
  test(`headers show the tightest window, which refuses, in /rate_limit as well (${name})`, async () => {
    await using gateway = await TestGateway.start({
      upstream: upstream.url,
      limits: { anonymous: 10 },
      categories: { core: { also: [{ limit: 4, windowSeconds: DAY_SECONDS }] } },
      ...own,
    });

    const answers: Answer[] = [];
    for (let n = 0; n < 6; n += 1) answers.push(await gateway.request('/user'));
    const search = await gateway.request('/search/users');
    const { resources } = await gateway.rateLimit();
    const refused = answers.at(-1)!;
    const limits = await gateway.cli('limits', 'ip:127.0.0.1');

    assert.deepEqual(answers.map(numbersOf), [
      [4, 1, 3],
      [4, 2, 2],
      [4, 3, 1],
      [4, 4, 0],
      [4, 4, 0],
      [4, 4, 0],
    ]);
    assert.deepEqual([refused.status, numbersOf(search)], [403, [10, 1, 9]]);
    const { limit, used, remaining, reset } = resources['core']!;
    assert.deepEqual([[limit, used, remaining], String(reset)], [[4, 4, 0], refused.headers['x-ratelimit-reset']]);
    assert.ok(reset - Date.now() / 1000 > 3601);
    assert.match(limits.output, /^core +10 +4 +6 /m);
    assert.match(limits.output, /^primary core 86400 s +4 +4 +0 /m);
    assert.equal((await gateway.cli('forgive', 'ip:127.0.0.1')).code, 0);
    await eventually('both windows are forgotten', async () => (await gateway.request('/user')).status === 200);
  });
}

test('an anonymous limit and an override are those of the own window, and further ones are for every caller', async () => {
  await using gateway = await TestGateway.start({
    upstream: upstream.url,
    categories: {
      search: { limit: 9, anonymousLimit: 2, also: [{ limit: 3, windowSeconds: 60 }] },
      core: { also: [{ limit: 5, windowSeconds: 60 }] },
    },
    overrides: { 'ip:127.0.0.2': { limit: 3 }, 'ip:127.0.0.3': { limit: 900 } },
  });
  const first = async (path: string, from: string): Promise<number[]> =>
    numbersOf(await gateway.request(path, { from }));

  assert.deepEqual(await first('/search/users', '127.0.0.1'), [2, 1, 1]);
  assert.deepEqual(await first('/user', '127.0.0.2'), [3, 1, 2]);
  assert.deepEqual(await first('/user', '127.0.0.3'), [5, 1, 4]);
});

test('a reload puts further windows in force, and takes them away', async () => {
  const settings: Settings = { upstream: upstream.url };
  await using gateway = await TestGateway.start(settings);
  const ask = async (): Promise<number[]> => numbersOf(await gateway.request('/user'));

  const before = await ask();
  await gateway.reload({ ...settings, categories: { core: { also: [{ limit: 3, windowSeconds: 600 }] } } });
  const during = [await ask(), await ask()];
  await gateway.reload(settings);
  const afterwards = await ask();

  assert.deepEqual(
    [before, ...during, afterwards],
    [
      [60, 1, 59],
      [3, 1, 2],
      [3, 2, 1],
      [60, 4, 56],
    ],
  );
});

test('further windows that cannot work are refused with their places', async () => {
  const also = [
    { limit: 3, windowSeconds: 3600 },
    { limit: 3, windowSeconds: 60 },
    { limit: 4, windowSeconds: 60 },
  ];
  const settings = {
    upstream: upstream.url,
    categories: { core: { also }, scim: { limit: 'off' as const, also: [{ limit: 1, windowSeconds: 1 }] } },
  };

  await assert.rejects(TestGateway.start(settings), (error: Error) => {
    assert.match(error.message, /categories\.core\.also\.0\.windowSeconds: another window of the category is as long/);
    assert.match(error.message, /categories\.core\.also\.2\.windowSeconds: another window of the category is as long/);
    assert.match(error.message, /categories\.scim\.also: has no effect in a category that is off/);
    return true;
  });
});
