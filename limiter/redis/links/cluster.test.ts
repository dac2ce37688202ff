import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { TestRedis } from '@gantry/testing/redis/test-redis.ts';
import { createClient } from '@redis/client';

import { RateLimiter } from '../../limiter.ts';
import { limitRules } from '../../rules.ts';
import type { Caller } from '../../types.ts';
import { RedisStore } from '../store.ts';

/** A cluster of one server: it checks slots like any other. */
async function startCluster(): Promise<TestRedis> {
  const redis = await TestRedis.start('--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf');
  const client = createClient({ socket: { path: redis.url, reconnectStrategy: false } });
  client.on('error', () => undefined);
  await client.connect();
  await client.sendCommand(['CLUSTER', 'ADDSLOTSRANGE', '0', '16383']);
  // It takes writes two seconds after it began, and tells nobody.
  while (!(await client.sendCommand<string>(['CLUSTER', 'INFO'])).startsWith('cluster_state:ok')) await sleep(50);
  client.destroy();
  return redis;
}

test('everything of a caller lies in one slot of a cluster', async () => {
  await using redis = await startCluster();
  const store = new RedisStore({ url: redis.url, timeoutMs: 5000 });
  await store.ready();
  const rules = limitRules({ restPoints: { limit: 1000, windowSeconds: 60 } });
  await using limiter = new RateLimiter({ store, rules });
  const endpoints = [
    limiter.endpoint({ name: 'GET /repos/{id}' }),
    limiter.endpoint({ name: 'POST /issues', content: { perMinute: 50, perHour: 100 } }),
    limiter.endpoint({ name: 'GET /search', category: 'search' }),
    limiter.endpoint({ name: 'GraphQL', api: 'graphql' }),
  ];
  const callers = ['1', '2', '{odd}', '}', 'äö'].map((id): Caller => ({
    kind: 'user',
    key: `user:${id}`,
    limit: 5000,
    label: id,
  }));

  const decisions = await Promise.all(
    callers.flatMap((caller) => endpoints.map(async (endpoint) => await limiter.admit(caller, endpoint))),
  );
  for (const decision of decisions) decision.end(0.01);
  const states = await Promise.all(callers.map(async ({ key }) => await limiter.explainCaller(key)));
  const client = createClient({ socket: { path: redis.url, reconnectStrategy: false } });
  await client.connect();
  const keys = (await client.sendCommand(['KEYS', '*'])) as unknown as string[];
  client.destroy();

  assert.ok(decisions.every(({ allowed }) => allowed));
  assert.deepEqual(
    states.map(({ windows }) => windows.find(({ name }) => name === 'core')?.used),
    [2, 2, 2, 2, 2],
  );
  assert.equal(keys.length, callers.length, 'one key for each caller is one slot for each caller');
});
