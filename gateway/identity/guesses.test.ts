import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { type Answer, type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller } from '../admin/client.ts';
import { NoTurn, Turns } from './turns.ts';

const FLOODER = '127.0.4.1';

/** A forge that knows every token that begins with `good`. */
async function startForge(): Promise<TestUpstream> {
  const forge = await TestUpstream.start();
  forge.on('/api/v1/user', (request, response) => {
    const token = request.headers.authorization?.slice('Bearer '.length) ?? '';
    if (token.startsWith('good')) response.end(JSON.stringify({ id: token }));
    else response.writeHead(401).end();
  });
  return forge;
}

function settingsFor(forge: TestUpstream, introspection: Partial<Settings['introspection']> = {}): Settings {
  return {
    upstream: forge.url,
    limits: { anonymous: 20 },
    introspection: { url: `${forge.url}/api/v1/user`, ...introspection },
  };
}

/** Random tokens from one address, as many at once as `width`, until it is stopped. */
function flood(gateway: TestGateway, width: number, from = FLOODER) {
  const until = new AbortController();
  const statuses: number[] = [];
  const client = async (): Promise<void> => {
    while (!until.signal.aborted) {
      const { status } = await gateway.request('/user', { token: randomUUID(), from });
      statuses.push(status);
    }
  };
  const clients = Array.from({ length: width }, client);
  return {
    statuses,
    stop: async () => {
      until.abort();
      await Promise.all(clients);
    },
  };
}

test('guesses of tokens count on their address before the forge hears of them', async () => {
  await using forge = await startForge();
  await using gateway = await TestGateway.start(settingsFor(forge));
  const started = performance.now();

  const answers: Promise<Answer>[] = [];
  for (let n = 0; n < 60; n += 1) answers.push(gateway.request('/user', { token: randomUUID(), from: FLOODER }));
  await Promise.all(answers.slice(0, 20));
  const anonymous = await gateway.request('/user', { from: FLOODER });
  const { status } = await gateway.request('/user', { token: 'good-1', from: '127.0.4.2' });

  const slow = ((performance.now() - started) / 1000 + 1) * 10;
  assert.equal(anonymous.status, 403);
  assert.equal(status, 200);
  const guesses = forge.count('/api/v1/user') - 1;
  assert.ok(guesses <= 20 + slow, `${guesses} questions, ${slow} of them slow`);
  await Promise.all(answers);
});

test('a good token is not refused for guesses of others at its address', async () => {
  await using forge = await startForge();
  await using gateway = await TestGateway.start(settingsFor(forge, { cacheSeconds: 1 }));
  await gateway.request('/user', { token: 'good-known', from: FLOODER });
  const before = forge.count('/api/v1/user');
  const started = performance.now();
  const others = flood(gateway, 40);
  while (others.statuses.length < 60) {
    await gateway.request('/user', { token: 'good-known', from: FLOODER });
    await setTimeout(50); // without a pause it would use up its own points
  }

  const known: number[] = [];
  for (let n = 0; n < 20; n += 1) {
    known.push((await gateway.request('/user', { token: 'good-known', from: FLOODER })).status);
  }
  const fresh = await Promise.all(
    ['good-1', 'good-2', 'good-3'].map(async (token) => await gateway.request('/user', { token, from: FLOODER })),
  );
  const elsewhere = await gateway.request('/user', { token: 'good-4', from: '127.0.4.2' });
  await others.stop();

  const seconds = (performance.now() - started) / 1000;
  assert.deepEqual(new Set(known), new Set([200]));
  assert.deepEqual(
    [...fresh, elsewhere].map(({ status, headers }) => [status, headers['x-ratelimit-limit']]),
    Array.from({ length: 4 }, () => [200, '5000']),
  );
  const questions = forge.count('/api/v1/user') - before;
  assert.ok(questions < 20 + 15 * (seconds + 1), `${questions} questions in ${seconds} s`);
  assert.ok(others.statuses.every((status) => status === 401 || status === 403 || status === 503));
});

test('a good token spends nothing of its address', async () => {
  await using forge = await startForge();
  await using gateway = await TestGateway.start(settingsFor(forge));

  for (let n = 0; n < 30; n += 1) await gateway.request('/user', { token: `good-${n}`, from: FLOODER });

  const { underWay, windows } = await askCaller(gateway.adminSocket, `ip:${FLOODER}`);
  assert.equal(underWay, 0);
  assert.deepEqual(
    windows.filter(({ used }) => used > 0),
    [],
  );
});

test('the questions of one address wait for each other, and not those of another one', async () => {
  await using forge = await TestUpstream.start();
  const answering = Promise.withResolvers<void>();
  forge.on('/api/v1/user', async (request, response) => {
    if (request.headers.authorization?.startsWith('Bearer slow') === true) await answering.promise;
    response.end('{"id":1}');
  });
  await using gateway = await TestGateway.start(settingsFor(forge, { timeoutMs: 20_000 }));
  const slow = [1, 2, 3, 4].map(async (n) => await gateway.request('/user', { token: `slow-${n}`, from: FLOODER }));
  await forge.until(() => forge.count('/api/v1/user') === 4);

  const behind = gateway.request('/user', { token: 'behind', from: FLOODER });
  const beside = await gateway.request('/user', { token: 'beside', from: '127.0.4.2' });
  const asked = forge.count('/api/v1/user');
  answering.resolve();
  const waited = await Promise.all([...slow, behind]);

  assert.equal(asked, 5);
  assert.deepEqual(
    [...waited, beside].map(({ status }) => status),
    [200, 200, 200, 200, 200, 200],
  );
});

test('a question that has waited too long has no turn, and the next one has it', async () => {
  const turns = new Turns({ concurrency: 2, perSource: 2, slowPerSecond: 1, waitMs: 50 });
  const first = await turns.take('ip:127.0.4.1', 'normal');
  await turns.take('ip:127.0.4.1', 'normal');

  await assert.rejects(turns.take('ip:127.0.4.2', 'normal'), NoTurn);
  first[Symbol.dispose]();

  await turns.take('ip:127.0.4.2', 'normal');
});

test('tokens that were good before all wait for their turn, however many there are', async () => {
  const turns = new Turns({ concurrency: 1, perSource: 1, slowPerSecond: 1, waitMs: 120_000 });
  const first = await turns.take('ip:127.0.4.1', 'normal');
  const strangers = Array.from({ length: 10_000 }, (_, n) => turns.take(`ip:10.0.${n >> 8}.${n & 255}`, 'normal'));

  const known = Array.from({ length: 500 }, async () => await turns.take('ip:127.0.4.2', 'urgent'));
  await assert.rejects(turns.take('ip:127.0.4.3', 'normal'), NoTurn);
  first[Symbol.dispose]();
  for (const turn of known) (await turn)[Symbol.dispose]();

  for (const turn of strangers) (await turn)[Symbol.dispose]();
});
