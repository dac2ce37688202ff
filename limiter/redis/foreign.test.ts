import assert from 'node:assert/strict';
import { test } from 'node:test';

import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

import { RateLimiter } from '../limiter.ts';
import type { Caller } from '../types.ts';
import { connectionTo } from './links/connection.ts';
import { RedisStore } from './store.ts';

function callerOf(id: string): Caller {
  return { kind: 'user', key: `user:${id}`, limit: 100, label: `user ID ${id}` };
}

test('a value that is none of ours fails the requests of its caller alone, and stays as it is', async () => {
  await using redis = await TestRedis.start();
  const client = connectionTo(redis.url);
  await client.connect();
  const errors: unknown[] = [];
  const store = new RedisStore({ url: redis.url });
  await store.ready();
  await using limiter = new RateLimiter({ store, reportFailure: (error) => errors.push(error) });
  const endpoint = limiter.endpoint({ name: 'POST /', content: true });
  (await limiter.admit(callerOf('longer'), endpoint)).end(0);
  await limiter.explainCaller('user:longer');
  const ours = (await client.get('gantry:{user:longer}')) ?? Buffer.alloc(0);
  await client.set('gantry:{user:longer}', Buffer.concat([ours, Buffer.from('x')]));
  await client.set('gantry:{user:newer}', Buffer.concat([Buffer.from([2]), ours.subarray(1)]));
  await client.set('gantry:{user:text}', 'x'.repeat(200));
  await client.set('gantry:{user:short}', '1');
  await client.lPush('gantry:{user:list}', 'x');
  const foreign = ['longer', 'newer', 'text', 'short', 'list'];

  const decisions = await Promise.all(
    [...foreign, 'fine'].flatMap((id) => [1, 2].map(async () => await limiter.admit(callerOf(id), endpoint))),
  );
  await limiter.chargeContent(callerOf('list'));
  await limiter.chargeContent(callerOf('fine'));
  const listed = await Array.fromAsync(limiter.callers()).catch(() => []);
  const kept = [await client.strLen('gantry:{user:text}'), await client.lLen('gantry:{user:list}')];
  client.destroy();

  assert.deepEqual(
    decisions.map((decision) => (decision.allowed ? 'admitted' : decision.kind)),
    [...foreign.flatMap(() => ['unavailable', 'unavailable']), 'admitted', 'admitted'],
  );
  assert.match(String(errors[0]), /gantry:\{user:longer\} was not written by this version/);
  assert.equal(errors.length, 2 * foreign.length + 1);
  assert.deepEqual(kept, [200, 1]);
  assert.deepEqual(
    listed.map(({ key, underWay }) => [key, underWay]),
    [['user:fine', 2]],
  );
});
