import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { RawClient } from '@gantry/testing/gateway/raw-client.ts';
import { TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';
import { askInTurn, settings, storeOf, underWay, workersOf } from '@gantry/testing/gateway/worker-processes.ts';
import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

// They mostly wait.
describe('a killed worker', { concurrency: true }, () => {
  for (const kind of ['memory', 'sqlite', 'redis'] as const) {
    test(`a worker that is killed is replaced, and its requests are over (${kind})`, async () => {
      await using upstream = await TestUpstream.start();
      const held = upstream.hold('/held');
      await using redis = await TestRedis.start();
      const store = { ...storeOf(kind, redis), leaseSeconds: 3 };
      await using gateway = await TestGateway.start({ ...settings, upstream: upstream.url, store });
      const clients = await Promise.all(Array.from({ length: 12 }, async () => await RawClient.connect(gateway)));
      for (const client of clients) client.send('GET /held HTTP/1.1\r\nHost: a\r\n\r\n');
      await upstream.until(() => held.waiting() === 12);
      const during = await underWay(gateway);

      const [victim = 0] = workersOf(gateway);
      process.kill(victim, 'SIGKILL');
      await upstream.until(() => held.waiting() < 12);
      await gateway.logged(/^a worker has ended/);
      await eventually(
        'there is another worker',
        () => workersOf(gateway).filter((pid) => pid !== victim).length === 2,
      );
      await eventually('the places of the dead one are free', async () => (await underWay(gateway)) === held.waiting());
      const left = held.waiting();
      held.release();
      await eventually('nothing is under way', async () => (await underWay(gateway)) === 0);
      const answers = await askInTurn(6, gateway);

      assert.equal(during, 12);
      assert.ok(left > 0 && left < 12, `${left} of 12`);
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200, 200, 200, 200, 200],
      );
      assert.equal(answers.at(-1)?.headers.get('x-ratelimit-used'), '18');
      for (const client of clients) client[Symbol.dispose]();
    });
  }
});

test('a worker that hangs is ended and replaced, and its connections with it', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({ ...settings, upstream: upstream.url });
  const [victim = 0] = workersOf(gateway);
  process.kill(victim, 'SIGSTOP');
  const clients = await Promise.all(Array.from({ length: 12 }, async () => await RawClient.connect(gateway)));
  using undo = new DisposableStack();
  for (const client of clients) undo.use(client).send('GET /user HTTP/1.1\r\nHost: a\r\n\r\n');

  const line = await gateway.logged('a worker does not answer; it is ended');
  const ends = await Promise.all(
    clients.map(
      async (client) =>
        await client.answer().then(
          ({ status }) => status,
          () => 'closed',
        ),
    ),
  );
  await eventually('there is another worker', () => workersOf(gateway).filter((pid) => pid !== victim).length === 2);

  assert.equal(line['worker'], victim);
  assert.deepEqual(new Set(ends), new Set([200, 'closed']));
});
