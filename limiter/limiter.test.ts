import assert from 'node:assert/strict';
import { test } from 'node:test';

import { TestClock } from '@gantry/testing/limiter/store.fixture.ts';
import { growthBy, leastOf } from '@gantry/testing/memory/bytes-in-use.ts';

import { RateLimiter } from './limiter.ts';
import { MemoryStore } from './memory/store.ts';
import { headersOf, refusalOf, statusBody } from './present.ts';
import { callerFrom } from './primary.ts';
import { limitRules, type RuleChanges } from './rules.ts';
import type { Caller, Refusal } from './types.ts';

const caller = { ...callerFrom({ kind: 'user', userId: '42' }), limit: 1 };

function start(changes: RuleChanges = {}) {
  const clock = new TestClock();
  const limiter = new RateLimiter({ store: new MemoryStore({ now: clock.now }), rules: limitRules(changes) });
  return { clock, limiter, endpoint: limiter.endpoint({ name: 'GET /x' }) };
}

async function refusal(limiter: RateLimiter, endpoint: ReturnType<RateLimiter['endpoint']>): Promise<Refusal> {
  const decision = await limiter.admit(caller, endpoint);
  if (decision.allowed) assert.fail('admitted');
  return decision;
}

test('a primary refusal has the form that clients know, without retry-after', async () => {
  const { limiter, endpoint } = start();
  (await limiter.admit(caller, endpoint)).end(0);

  const response = refusalOf(await refusal(limiter, endpoint), { documentationUrl: 'https://gantry.test/limits' });

  assert.equal(response.status, 403);
  assert.equal(response.statusText, undefined);
  assert.deepEqual(JSON.parse(response.body), {
    message: 'API rate limit exceeded for user ID 42.',
    documentation_url: 'https://gantry.test/limits#primary-rate-limits',
  });
  assert.deepEqual(response.headers, {
    'x-ratelimit-limit': '1',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-used': '1',
    'x-ratelimit-reset': '1800003601',
    'x-ratelimit-resource': 'core',
    'content-type': 'application/json; charset=utf-8',
  });
});

test('a ban is told like the refusals that led to it, and the reset is not before its end', async () => {
  const { limiter, endpoint } = start({ ban: { refusals: 1, withinSeconds: 60, banSeconds: 9000 } });
  (await limiter.admit(caller, endpoint)).end(0);
  await refusal(limiter, endpoint);

  const banned = await refusal(limiter, endpoint);

  const response = refusalOf(banned);
  assert.deepEqual([banned.kind, response.status, response.statusText], ['banned', 403, undefined]);
  assert.match(response.body, /^\{"message":"API rate limit exceeded for user ID 42\. .*#primary-rate-limits"\}$/);
  assert.equal(response.headers['x-ratelimit-remaining'], '0');
  assert.equal(Number(response.headers['x-ratelimit-reset']), 1_800_000_000 + 9000);
});

test('a secondary refusal has the words, the reason phrase and the wait that clients look for', async () => {
  const { limiter, endpoint } = start({ restPoints: { limit: 0, windowSeconds: 60 } });

  const response = refusalOf(await refusal(limiter, endpoint), { status: 429 });
  const { message, documentation_url: url } = JSON.parse(response.body) as Record<string, string>;

  assert.deepEqual([response.status, response.statusText], [429, 'Secondary rate limit exceeded']);
  assert.match(String(message), /secondary rate limit.*Please wait a few minutes before you try again\.$/);
  assert.match(String(url), /#secondary-rate-limits$/);
  assert.equal(response.headers['retry-after'], '61');
  assert.equal(response.headers['x-ratelimit-remaining'], '1');
});

test('repeated requests while limited are noted, and explained until the reset', async () => {
  const { limiter, endpoint, clock } = start();
  (await limiter.admit(caller, endpoint)).end(0);

  await refusal(limiter, endpoint);
  const second = await refusal(limiter, endpoint);
  const explained = limiter.explain();
  clock.pass(3700);
  const later = limiter.explain();

  assert.equal(second.repeated, 2);
  assert.deepEqual(explained, [
    { key: 'user:42', refusedBy: 'primary', where: 'core', untilSeconds: 1_800_003_601, refused: 2 },
  ]);
  assert.deepEqual(later, []);
});

test('a ban begins with the configured refusal, ends in time, and is off by default', async () => {
  const { limiter, endpoint, clock } = start({
    restPoints: { limit: 1, windowSeconds: 60 },
    ban: { refusals: 3, withinSeconds: 60, banSeconds: 600 },
  });
  const rich = { ...caller, limit: 100 };
  (await limiter.admit(rich, endpoint)).end(0);
  const elsewhere = limiter.endpoint({ name: 'GET /y' });

  const kinds: string[] = [];
  for (let n = 0; n < 4; n += 1) {
    const decision = await limiter.admit(rich, n === 3 ? elsewhere : endpoint);
    kinds.push(decision.allowed ? 'allowed' : decision.kind);
    if (n === 3 && !decision.allowed) assert.deepEqual([decision.retryAfterSeconds, decision.remaining], [600, 99]);
  }
  const explained = limiter.explain();
  clock.pass(600);
  const afterwards = await limiter.admit(rich, endpoint);

  assert.deepEqual(kinds, ['secondary', 'secondary', 'secondary', 'banned']);
  assert.equal(explained[0]?.refusedBy, 'ban');
  assert.equal(afterwards.allowed, true);
  assert.equal(limiter.counts.banned, 1);
});

test('a pause ends a row of refusals before it becomes a ban', async () => {
  const { limiter, endpoint, clock } = start({ ban: { refusals: 3, withinSeconds: 60, banSeconds: 600 } });
  (await limiter.admit(caller, endpoint)).end(0);
  const kinds: string[] = [];

  for (let round = 0; round < 3; round += 1) {
    for (let n = 0; n < 2; n += 1) kinds.push((await refusal(limiter, endpoint)).kind);
    clock.pass(61);
  }

  assert.deepEqual(new Set(kinds), new Set(['primary']));
});

test('changed rules hold from the next request on and keep the counts', async () => {
  const { limiter, endpoint } = start();
  (await limiter.admit(caller, endpoint)).end(0);

  limiter.changeRules(limitRules({ categories: { core: { limit: 3, windowSeconds: 3600 } } }));
  const next = await limiter.admit(caller, endpoint);

  assert.deepEqual([next.allowed, next.used, next.limit], [true, 2, 3]);
});

test('the body of the status equals core in rate, and the next version has no source_import', async () => {
  const { limiter, endpoint } = start();
  (await limiter.admit(caller, endpoint)).end(0);
  const status = await limiter.status(caller);

  const body = statusBody(status);
  const next = statusBody(status, ['source_import']);

  assert.equal(Object.keys(body.resources).length, 10);
  assert.deepEqual(body.rate, body.resources['core']);
  assert.deepEqual(body.rate, { limit: 1, used: 1, remaining: 0, reset: 1_800_003_601 });
  assert.equal('source_import' in next.resources, false);
});

test('an admission that is left by using has ended with the time that passed', async () => {
  const { limiter, endpoint, clock } = start();
  {
    using decision = await limiter.admit(caller, endpoint);
    assert.equal(headersOf(decision)['x-ratelimit-used'], '1');
    clock.pass(2);
  }

  const { windows, underWay } = await limiter.explainCaller(caller.key);

  assert.equal(underWay, 0);
  assert.equal(windows.find(({ name }) => name === 'cpu')?.used, 2000);
});

test('time that is not a number or below nothing is not charged', async () => {
  const { limiter, endpoint } = start();
  const rich = { ...caller, limit: 100 };
  for (const cpuSeconds of [Number.NaN, -5, Number.NEGATIVE_INFINITY])
    (await limiter.admit(rich, endpoint)).end(cpuSeconds);

  const { windows } = await limiter.explainCaller(caller.key);

  assert.equal(windows.find(({ name }) => name === 'cpu')?.used, 0);
});

test('wrong rules are refused with all their places', () => {
  const wrong = (): unknown =>
    limitRules({
      restPoints: { limit: -1, windowSeconds: 60 },
      categories: { search: { limit: 30, windowSeconds: 0.5 } },
    });

  assert.throws(wrong, /categories\.search\.windowSeconds .*; restPoints\.limit must be a whole number .* not -1/);
});

test('a hundred thousand addresses cost less than 32 MB', async () => {
  const bytes = await leastOf(8, 32_000_000, async () => {
    const limiter = new RateLimiter();
    const endpoint = limiter.endpoint({ name: 'GET /' });
    const grown = await growthBy(async () => {
      for (let n = 0; n < 100_000; n += 1) {
        const address = `10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`;
        using decision = await limiter.admit(callerFrom({ kind: 'anonymous', address }), endpoint);
        assert.ok(decision.allowed);
      }
    });
    assert.ok((await limiter.explainCaller('ip:10.0.0.1')).windows.length > 0); // it is still in use
    return grown;
  });

  assert.ok(bytes < 32_000_000, `${bytes / 100_000} bytes for each`);
});

test('limiters that tell each other their refusals ban a caller together', async () => {
  const rules = limitRules({ ban: { refusals: 4, withinSeconds: 60, banSeconds: 600 } });
  const limiters: RateLimiter[] = [];
  for (let n = 0; n < 2; n += 1) {
    limiters.push(
      new RateLimiter({
        rules,
        reportRefusal: (note) => limiters[1 - n]?.noteRefusal(note),
      }),
    );
  }
  const poor: Caller = { kind: 'user', key: 'user:1', limit: 0, label: 'user ID 1' };
  const kinds: string[] = [];

  for (let n = 0; n < 6; n += 1) {
    const limiter = limiters[n % 2]!;
    const decision = await limiter.admit(poor, limiter.endpoint({ name: 'GET /' }));
    kinds.push(decision.allowed ? 'allowed' : decision.kind);
  }

  assert.deepEqual(kinds, ['primary', 'primary', 'primary', 'primary', 'banned', 'banned']);
  assert.deepEqual(
    limiters.map((limiter) => limiter.explain().map(({ refusedBy, refused }) => [refusedBy, refused])),
    [[['ban', 3]], [['ban', 3]]],
  );
});

test('each store numbers its endpoints by itself, and takes no others', async () => {
  const [one, other] = [start().limiter, start().limiter];
  for (let n = 0; n < 19_999; n += 1) one.endpoint({ name: `GET /${n}` });
  const here = other.endpoint({ name: 'GET /y' });

  const decision = await other.admit(caller, here);
  const { windows } = await other.explainCaller(caller.key);

  assert.equal(decision.allowed, true);
  assert.deepEqual(windows.map(({ name }) => name).toSorted(), ['core', 'cpu', 'graphql-cpu', 'points GET /y']);
  assert.throws(() => one.endpoint({ name: 'GET /one/more' }), /more than 20000 endpoints/);
  assert.throws(() => one.admit(caller, here), {
    name: 'TypeError',
    message: 'GET /y is an endpoint of another store',
  });
});

test('a clock that is set is no time of the requests under way', async () => {
  const { limiter, endpoint, clock } = start();
  const decision = await limiter.admit({ ...caller, limit: 10 }, endpoint);
  assert.ok(decision.allowed);
  decision.begin();

  clock.pass(3000);
  limiter.chargeRunning();
  decision.end();
  const { windows } = await limiter.explainCaller(caller.key);

  const cpu = windows.find(({ name }) => name === 'cpu')?.used ?? 0;
  assert.ok(cpu < 1_000_000, `${cpu} ms`);
});
