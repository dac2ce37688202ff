import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { LimitedCaller } from '@gantry/limiter/types.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';
import { ask, askInTurn, settings, workersOf } from '@gantry/testing/gateway/worker-processes.ts';

import { askLimited } from '../admin/client.ts';

test('all workers know the limited callers, and refuse those that one of them has banned', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({
    ...settings,
    upstream: upstream.url,
    limits: { anonymous: 2 },
    ban: { refusals: 6, banSeconds: 60 },
  });
  await askInTurn(2, gateway);

  const refused = await askInTurn(6, gateway);
  const before = await askLimited(gateway.adminSocket);
  const banned = await askInTurn(8, gateway);
  const [caller] = (await askLimited(gateway.adminSocket)) as [LimitedCaller];

  assert.ok(refused.every(({ body }) => body.includes('API rate limit exceeded')));
  assert.deepEqual(
    before.map(({ key, refused: times }) => [key, times]),
    [['ip:127.0.0.1', 6]],
  );
  assert.deepEqual(
    banned.map(({ status, headers }) => [status, Number(headers.get('retry-after')) > 50]),
    banned.map(() => [403, true]),
  );
  assert.ok(
    banned.every(({ body }) => body.includes('have been blocked')),
    String(banned[0]?.body),
  );
  assert.deepEqual([caller.refusedBy, caller.refused], ['ban', 14]);
  assert.equal((await gateway.metrics()).get('gantry_gateway_requests_refused_total{limit="ban"}'), 8);
});

test('a worker that comes later knows the banned callers', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({
    ...settings,
    upstream: upstream.url,
    limits: { anonymous: 1 },
    ban: { refusals: 4, banSeconds: 60 },
  });
  await askInTurn(5, gateway);

  const before = workersOf(gateway);
  for (const pid of before) process.kill(pid, 'SIGKILL');
  await eventually('there are two other workers', () => {
    return workersOf(gateway).filter((pid) => pid > 0 && !before.includes(pid)).length === 2;
  });
  await eventually(
    'they answer',
    async () =>
      await ask(gateway).then(
        () => true,
        () => false,
      ),
  );
  const [answer] = await askInTurn(1, gateway);

  assert.equal(answer?.status, 403);
  assert.ok(answer.body.includes('have been blocked'), answer.body);
});
