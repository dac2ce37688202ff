import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';
import {
  askInTurn,
  askTimes,
  settings,
  storeOf,
  underWay,
  workersOf,
} from '@gantry/testing/gateway/worker-processes.ts';
import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

import { askCaller } from '../admin/client.ts';

for (const kind of ['memory', 'sqlite', 'redis'] as const) {
  test(`two workers have one count (${kind})`, async () => {
    await using upstream = await TestUpstream.start();
    await using redis = await TestRedis.start();
    const store = storeOf(kind, redis);
    await using gateway = await TestGateway.start({ ...settings, upstream: upstream.url, store });

    const answers = [...(await askInTurn(10, gateway)), ...(await askTimes(40, gateway))];
    const admitted = answers.filter(({ status }) => status === 200);
    const used = admitted.map(({ headers }) => Number(headers.get('x-ratelimit-used'))).toSorted((a, b) => a - b);
    const state = await askCaller(gateway.adminSocket, 'ip:127.0.0.1');

    assert.equal(workersOf(gateway).length, 2);
    assert.deepEqual(
      used,
      Array.from({ length: 20 }, (_, n) => n + 1),
    );
    assert.equal(answers.filter(({ status }) => status === 403).length, 30);
    assert.equal(new Set(answers.map(({ headers }) => headers.get('x-ratelimit-reset'))).size, 1);
    assert.equal(state.windows.find(({ name }) => name === 'core')?.used, 20);
    await eventually('nothing is under way', async () => (await underWay(gateway)) === 0);
  });
}
