import assert from 'node:assert/strict';
import { test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { RawClient } from '@gantry/testing/gateway/raw-client.ts';
import { TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';
import { askInTurn, settings, underWay, workersOf } from '@gantry/testing/gateway/worker-processes.ts';

test('the operator is answered while a worker is killed', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({ ...settings, upstream: upstream.url });
  const [victim = 0] = workersOf(gateway);

  // Killed while it is asked: what it knew is left out.
  const asked = Promise.all(Array.from({ length: 20 }, async () => await gateway.metrics()));
  process.kill(victim, 'SIGKILL');

  assert.equal((await asked).length, 20);
});

test('upgraded connections are counted in both workers, and no longer when they end', async () => {
  await using upstream = await TestUpstream.start();
  upstream.onUpgrade = (_request, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n');
    socket.pipe(socket);
    socket.on('error', () => socket.destroy());
  };
  await using gateway = await TestGateway.start({ ...settings, upstream: upstream.url });
  const clients = await Promise.all(Array.from({ length: 6 }, async () => await RawClient.connect(gateway)));
  for (const client of clients) {
    await client.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n').until('\r\n\r\n');
  }
  const during = (await gateway.metrics()).get('gantry_gateway_requests_under_way');

  for (const client of clients) client[Symbol.dispose]();

  assert.equal(during, 6);
  await eventually('nothing is under way', async () => {
    return (await gateway.metrics()).get('gantry_gateway_requests_under_way') === 0 && (await underWay(gateway)) === 0;
  });
});

test('workers end with the process that started them, however it ends', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({ ...settings, upstream: upstream.url });
  const pids = workersOf(gateway);

  gateway.signal('SIGKILL');
  await gateway.exited;

  const lives = (pid: number): boolean => {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  };
  await eventually('the workers have ended', () => !pids.some(lives));
});

test('SIGTERM lets the requests in all workers end, and takes no connection any more', async () => {
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/held');
  await using gateway = await TestGateway.start({ ...settings, upstream: upstream.url });
  const clients = await Promise.all(Array.from({ length: 6 }, async () => await RawClient.connect(gateway)));
  for (const client of clients) client.send('GET /held HTTP/1.1\r\nHost: a\r\n\r\n');
  await upstream.until(() => held.waiting() === 6);

  gateway.signal('SIGTERM');
  await gateway.logged(/^ending/);
  await eventually('nobody is let in', async () => {
    return await RawClient.connect(gateway).then(
      (client) => {
        client[Symbol.dispose]();
        return false;
      },
      () => true,
    );
  });
  held.release();
  const answers = await Promise.all(clients.map(async (client) => await client.answer()));

  assert.ok(answers.every(({ status, headers }) => status === 200 && headers.get('connection') === 'close'));
  assert.equal(await gateway.exited, 0);
});

test('SIGHUP puts other limits in force in all workers, and in those that come later', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({ ...settings, upstream: upstream.url });

  await gateway.reload({ ...settings, upstream: upstream.url, limits: { anonymous: 77 } });
  const limits = (await askInTurn(4, gateway)).map(({ headers }) => headers.get('x-ratelimit-limit'));
  const [victim = 0] = workersOf(gateway);
  process.kill(victim, 'SIGKILL');
  await gateway.logged(/^a worker has ended/);
  await eventually('there is another worker', () => workersOf(gateway).length === 2);
  const later = (await askInTurn(4, gateway)).map(({ headers }) => headers.get('x-ratelimit-limit'));

  assert.deepEqual(
    [...limits, ...later],
    Array.from({ length: 8 }, () => '77'),
  );
});
