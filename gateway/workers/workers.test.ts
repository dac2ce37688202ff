import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { eventually } from '@gantry/testing/eventually.ts';
import { type Answer, type Request, sha256, type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';
import { workersOf } from '@gantry/testing/gateway/worker-processes.ts';

import { askCaller, askLimited } from '../admin/client.ts';

const identities: Settings['identities'] = {
  users: { alice: {}, bob: {} },
  tokens: [
    { sha256: sha256('of-alice'), user: 'alice' },
    { sha256: sha256('of-bob'), user: 'bob' },
  ],
};

async function start(upstream: TestUpstream, settings: Settings = {}): Promise<TestGateway> {
  return await TestGateway.start({
    upstream: upstream.url,
    workers: 2,
    identities,
    log: { requests: true },
    ...settings,
  });
}

/** On a connection of its own: the kernel gives each worker some. */
async function ask(gateway: TestGateway, path: string, options: Request = {}): Promise<Answer> {
  return await gateway.request(path, { ...options, headers: { ...options.headers, connection: 'close' } });
}

async function askTimes(gateway: TestGateway, times: number, path: string, options: Request = {}): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let count = 0; count < times; count += 1) answers.push(await ask(gateway, path, options));
  return answers;
}

test('requests under way count together', async () => {
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/held');
  await using gateway = await start(upstream, { secondary: { concurrent: { limit: 12 } } });
  const slow = Array.from({ length: 12 }, async () => await ask(gateway, '/held', { token: 'of-alice' }));
  await upstream.until(() => held.waiting() === 12);

  const refused = await askTimes(gateway, 2, '/user', { token: 'of-alice' });
  const { underWay } = await askCaller(gateway.adminSocket, 'user:alice');
  held.release();
  await Promise.all(slow);
  const later = await ask(gateway, '/user', { token: 'of-alice' });

  assert.deepEqual(
    refused.map(({ statusText }) => statusText),
    Array<string>(2).fill('Secondary rate limit exceeded'),
  );
  assert.equal(underWay, 12);
  assert.equal(later.status, 200);
});

test('metrics and explain tell of all workers together', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await start(upstream, { limits: { user: 3 } });

  await askTimes(gateway, 9, '/user', { token: 'of-alice' });
  const metrics = await gateway.metrics();
  const limited = await askLimited(gateway.adminSocket);
  const { windows } = await askCaller(gateway.adminSocket, 'user:alice');

  assert.equal(metrics.get('gantry_gateway_requests_admitted_total'), 3);
  assert.equal(metrics.get('gantry_gateway_requests_refused_total{limit="primary"}'), 6);
  assert.equal(metrics.get('gantry_gateway_responses_total{from="upstream",status="2xx"}'), 3);
  assert.equal(metrics.get('gantry_gateway_upstream_response_seconds_count'), 3);
  assert.equal(metrics.get('gantry_gateway_requests_under_way'), 0);
  assert.deepEqual(
    limited.map(({ key, refused }) => [key, refused]),
    [['user:alice', 6]],
  );
  assert.equal(windows.find(({ name }) => name === 'core')?.used, 3);
});

test('content that is told on the admin socket is refused by every worker', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await start(upstream);

  const { code } = await gateway.cli('content', 'user:alice', '80');
  const answers = await askTimes(gateway, 12, '/gists', { method: 'POST', token: 'of-alice' });

  assert.equal(code, 0);
  assert.deepEqual(
    answers.map(({ status }) => status),
    Array<number>(12).fill(403),
  );
});

test('a reload reaches every worker, and one that is started later', async () => {
  await using upstream = await TestUpstream.start();
  const settings: Settings = { upstream: upstream.url, workers: 2, identities, log: { requests: true } };
  await using gateway = await start(upstream, settings);

  const said = await gateway.reload({ ...settings, limits: { user: 77 } });
  const answers = await askTimes(gateway, 10, '/user', { token: 'of-alice' });
  for (const pid of workersOf(gateway)) process.kill(pid, 'SIGKILL');
  await eventually('workers work again', async () => {
    const answer = await ask(gateway, '/user', { token: 'of-alice' }).catch(() => undefined);
    return answer?.status === 200;
  });
  const later = await ask(gateway, '/user', { token: 'of-alice' });

  assert.equal(said.msg, 'the settings were reloaded');
  assert.deepEqual(new Set(answers.map(({ headers }) => headers['x-ratelimit-limit'])), new Set(['77']));
  assert.equal(later.headers['x-ratelimit-limit'], '77');
  assert.equal(later.headers['x-ratelimit-used'], '12', 'the counts are those of the first process');
});

test('SIGTERM lets every worker answer its requests, and ends with 0', async () => {
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/held');
  await using gateway = await start(upstream);
  const slow = Array.from({ length: 20 }, async () => await ask(gateway, '/held'));
  await upstream.until(() => held.waiting() === 20);
  const workers = workersOf(gateway);

  gateway.signal('SIGTERM');
  await gateway.logged('ending: requests under way are answered first');
  await sleep(100);
  held.release();
  const answers = await Promise.all(slow);

  assert.deepEqual(
    answers.map(({ body }) => body),
    Array<string>(20).fill('released'),
  );
  assert.equal(await gateway.exited, 0);
  for (const pid of workers) assert.equal(isAlive(pid), false);
});

test('a connection that a dying worker was given is closed, and does not wait for ever', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await start(upstream);

  for (const pid of workersOf(gateway)) process.kill(pid, 'SIGKILL');
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const signal = AbortSignal.timeout(120_000);
      return await ask(gateway, '/user', { signal }).then(
        () => 'answered',
        (error: NodeJS.ErrnoException) => error.code,
      );
    }),
  );

  assert.deepEqual(
    outcomes.filter((outcome) => outcome !== 'ECONNRESET' && outcome !== 'ECONNREFUSED'),
    [],
  );
});

test('a port that is taken ends the start of all workers with one line', async () => {
  await using upstream = await TestUpstream.start();

  await assert.rejects(start(upstream, { listen: `127.0.0.1:${upstream.port}` }), /address already in use/);
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
    throw error;
  }
}
