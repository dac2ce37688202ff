import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { shownContract } from '@gantry/testing/limiter/shown.contract.ts';
import { storeContract } from '@gantry/testing/limiter/store.contract.ts';
import { TestClock } from '@gantry/testing/limiter/store.fixture.ts';
import { storeModelContract } from '@gantry/testing/limiter/store.model.contract.ts';
import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

import { RateLimiter, type RateLimiterOptions } from '../limiter.ts';
import { limitRules } from '../rules.ts';
import type { Caller } from '../types.ts';
import type { RedisStoreOptions } from './options.ts';
import { RedisStore } from './store.ts';

const shared = await TestRedis.start();
after(async () => await shared[Symbol.asyncDispose]());

let prefixes = 0;
async function openStore(options: Partial<RedisStoreOptions> = {}): Promise<RedisStore> {
  prefixes += 1;
  const store = new RedisStore({ url: shared.url, prefix: `test${prefixes}:`, timeoutMs: 5000, ...options });
  await store.ready();
  return store;
}

storeContract('Redis', async (now) => await openStore({ now }));
// The test's clock runs faster than leases are renewed.
storeModelContract('Redis', async (now) => await openStore({ now, rememberRefusals: false, leaseSeconds: 5000 }));
shownContract('Redis', async (now) => await openStore({ now, leaseSeconds: 5000 }));

const user: Caller = { kind: 'user', key: 'user:42', limit: 5000, label: 'user ID 42' };

/** A gateway's process: sends as many requests at once as it is told, and says how many passed. */
function startGateway(url: string, prefix: string, body: string): ChildProcess {
  const program = `
    import { RateLimiter } from ${JSON.stringify(new URL('../limiter.ts', import.meta.url).href)};
    import { limitRules } from ${JSON.stringify(new URL('../rules.ts', import.meta.url).href)};
    import { RedisStore } from ${JSON.stringify(new URL('store.ts', import.meta.url).href)};
    const store = new RedisStore({ url: ${JSON.stringify(url)}, prefix: ${JSON.stringify(prefix)}, timeoutMs: 20_000, leaseSeconds: 3 });
    await store.ready();
    const limiter = new RateLimiter({ store, rules: limitRules({ concurrent: { limit: 60_000, retrySeconds: 1 }, restPoints: { limit: 1_000_000, windowSeconds: 60 } }) });
    const endpoint = limiter.endpoint({ name: 'GET /' });
    const caller = { kind: 'user', key: 'user:42', limit: 500, label: 'user ID 42' };
    ${body}
  `;
  return spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: ['pipe', 'pipe', 'inherit'] });
}

async function firstLine(child: ChildProcess): Promise<string> {
  let text = '';
  for await (const chunk of child.stdout ?? []) {
    text += String(chunk);
    if (text.includes('\n')) break;
  }
  return text.trim();
}

test('ten processes with ten times the load admit exactly the limit', async () => {
  const body = `
    const decisions = await Promise.all(Array.from({ length: 500 }, () => limiter.admit(caller, endpoint)));
    for (const decision of decisions) decision.end(0);
    console.log(decisions.filter(({ allowed }) => allowed).length);
    await limiter[Symbol.asyncDispose]();
  `;
  const processes = Array.from({ length: 10 }, () => startGateway(shared.url, 'ten:', body));

  const admitted = await Promise.all(processes.map(async (child) => Number(await firstLine(child))));

  assert.equal(
    admitted.reduce((sum, count) => sum + count, 0),
    500,
    `admitted: ${admitted.join(' ')}`,
  );
});

test('requests under way in a gateway that was killed stop counting when its lease is over', async () => {
  const clock = new TestClock();
  const body = `
    const begun = Date.now();
    for (let n = 0; n < 100; n += 1) await limiter.admit(caller, endpoint);
    console.log(begun);
    setInterval(() => undefined, 1000);
  `;
  const child = startGateway(shared.url, 'killed:', body);
  const begun = Number(await firstLine(child));
  child.kill('SIGKILL');
  await once(child, 'exit');
  const ended = Date.now();
  const store = new RedisStore({ url: shared.url, prefix: 'killed:', now: clock.now, rememberRefusals: false });
  await store.ready();
  await using limiter = new RateLimiter({ store });
  const endpoint = limiter.endpoint({ name: 'GET /' });

  clock.ms = begun;
  const before = await limiter.admit(user, endpoint);
  clock.ms = ended + 5000;
  const afterwards = await limiter.admit(user, endpoint);

  assert.ok(!before.allowed);
  assert.equal(before.refusedBy, 'concurrent');
  assert.equal(afterwards.allowed, true);
});

test('a process that has counted nothing knows the further windows that others have opened', async () => {
  const also = [{ limit: 3, windowSeconds: 60 }];
  const rules = limitRules({ categories: { search: { limit: 30, windowSeconds: 3600, also } } });
  const open = async (): Promise<RateLimiter> => {
    const store = new RedisStore({ url: shared.url, prefix: 'further:' });
    await store.ready();
    return new RateLimiter({ store, rules });
  };
  await using one = await open();
  await using other = await open();
  const caller = { ...user, key: 'user:further' };
  const decision = await one.admit(caller, one.endpoint({ name: 'GET /search/users', category: 'search' }));

  const { search } = await other.status(caller);

  assert.deepEqual([search.limit, search.used, search.reset], [3, 1, decision.reset]);
});

test('the lease of a long request is renewed', async () => {
  await using limiter = new RateLimiter({
    store: await openStore({ leaseSeconds: 4 }),
    rules: limitRules({ concurrent: { limit: 1, retrySeconds: 1 } }),
  });
  const endpoint = limiter.endpoint({ name: 'GET /' });
  const long = await limiter.admit(user, endpoint);

  await sleep(9000); // two leases and more
  const during = await limiter.admit(user, endpoint);
  long.end(0);
  const afterwards = await limiter.admit(user, endpoint);

  assert.deepEqual([long.allowed, during.allowed, afterwards.allowed], [true, false, true]);
});

test('a known refusal is answered here, and the server is asked again at the reset', async () => {
  const clock = new TestClock();
  const store = await openStore({ now: clock.now });
  await using limiter = new RateLimiter({ store });
  const endpoint = limiter.endpoint({ name: 'GET /' });
  const poor = { ...user, limit: 1 };
  (await limiter.admit(poor, endpoint)).end(0);
  const asked = await limiter.admit(poor, endpoint);

  const known = limiter.admit(poor, endpoint);
  const richer = await limiter.admit({ ...poor, limit: 2 }, endpoint);
  clock.moveTo(asked.reset);
  const next = await limiter.admit(poor, endpoint);

  assert.ok(!(known instanceof Promise));
  assert.deepEqual(
    [known.allowed, known.used, known.remaining, known.reset, known.resource],
    [false, 1, 0, asked.reset, 'core'],
  );
  assert.equal(richer.allowed, true);
  assert.equal(next.allowed, true);
});

for (const onStoreFailure of ['open', 'closed'] as const) {
  test(`a server that is killed in the middle leaves no request without an answer (${onStoreFailure})`, async () => {
    await using redis = await TestRedis.start();
    await using gateway = await startLimiter(redis, { onStoreFailure });
    const { limiter, endpoint } = gateway;
    const before = await Promise.all(Array.from({ length: 50 }, async () => await limiter.admit(user, endpoint)));

    const during = Array.from({ length: 50 }, async () => await limiter.admit(user, endpoint));
    await redis.kill();
    const answers = await Promise.all(during);
    const later = await limiter.admit(user, endpoint);
    for (const decision of [...before, ...answers, later]) decision.end(0.1);

    assert.ok(before.every(({ allowed }) => allowed));
    assert.equal(answers.length, 50);
    assert.equal(later.allowed, onStoreFailure === 'open');
    if (later.allowed) assert.deepEqual([later.unchecked, later.limit], [true, 5000]);
    else assert.equal(later.kind, 'unavailable');
  });

  test(`a server that does not answer holds nobody for longer than the timeout (${onStoreFailure})`, async () => {
    await using redis = await TestRedis.start();
    await using gateway = await startLimiter(redis, { onStoreFailure }, { timeoutMs: 4000 });
    const { limiter, endpoint } = gateway;

    redis.freeze();
    const started = performance.now();
    const waited = await limiter.admit(user, endpoint);
    const waitedMs = performance.now() - started;
    const told = await limiter.admit(user, endpoint);
    const toldMs = performance.now() - started - waitedMs;
    redis.thaw();

    assert.deepEqual([waited.allowed, told.allowed], [onStoreFailure === 'open', onStoreFailure === 'open']);
    assert.ok(toldMs < 3000, `the second one waited ${toldMs} ms of ${waitedMs}`);
  });
}

test('a server that comes back is used again, although it does not know the script any more', async () => {
  await using redis = await TestRedis.start();
  await using gateway = await startLimiter(redis, {});
  const { limiter, endpoint } = gateway;
  (await limiter.admit(user, endpoint)).end(0);
  await redis.kill();

  const away = await limiter.admit(user, endpoint);
  await redis.start();
  const back = await untilAllowed(async () => await limiter.admit(user, endpoint));

  assert.equal(away.allowed, false);
  assert.deepEqual([back.allowed, back.used], [true, 1]);
});

test('a decision that got lost does not hold a place for ever', async () => {
  await using redis = await TestRedis.start();
  const rules = limitRules({ concurrent: { limit: 1, retrySeconds: 1 } });
  await using gateway = await startLimiter(redis, { rules }, { timeoutMs: 500, leaseSeconds: 2 });
  const { limiter, endpoint } = gateway;
  (await limiter.admit(user, endpoint)).end(0);
  redis.freeze();
  const lost = await limiter.admit(user, endpoint); // the server decides when it runs again, and nobody hears of it
  redis.thaw();

  const found = await untilAllowed(async () => await limiter.admit(user, endpoint));

  assert.equal(lost.allowed, false);
  assert.equal(found.allowed, true);
});

async function startLimiter(
  redis: TestRedis,
  options: RateLimiterOptions,
  storeOptions: Partial<RedisStoreOptions> = {},
): Promise<AsyncDisposable & { limiter: RateLimiter; endpoint: ReturnType<RateLimiter['endpoint']> }> {
  const store = new RedisStore({ url: redis.url, timeoutMs: 5000, ...storeOptions });
  await store.ready();
  const limiter = new RateLimiter({ store, ...options });
  return {
    limiter,
    endpoint: limiter.endpoint({ name: 'GET /' }),
    [Symbol.asyncDispose]: async () => await limiter[Symbol.asyncDispose](),
  };
}

/** Asks until it passes; gives up after two minutes. */
async function untilAllowed<T extends { allowed: boolean }>(ask: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + 120_000;
  for (;;) {
    const answer = await ask();
    if (answer.allowed || performance.now() > deadline) return answer;
    await sleep(20);
  }
}
