import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import type { LimitedCaller } from '@gantry/limiter/types.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { sha256, type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { askCaller, askLimited } from '../admin/client.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());

const settings: Settings = {
  upstream: upstream.url,
  limits: { anonymous: 2, user: 2 },
  overrides: { 'workflow:9': { limit: 1 }, 'app:7': { limit: 1 }, 'installation:8': { limit: 1 } },
  secondary: { contentPerMinute: { limit: 1 } },
  identities: {
    users: { '42': {}, '43': {} },
    apps: { '7': { kind: 'oauth', clientId: 'client', clientSecretSha256: sha256('secret') } },
    installations: { '8': {} },
    repositories: { '9': {} },
    tokens: [
      { sha256: sha256('personal'), user: '42' },
      { sha256: sha256('other'), user: '43' },
      { sha256: sha256('installation'), installation: '8' },
      { sha256: sha256('workflow'), repository: '9' },
    ],
  },
};
const gateway = await TestGateway.start(settings);
after(async () => await gateway[Symbol.asyncDispose]());

const configured = await TestGateway.start({
  ...settings,
  refusal: { status: 429 },
});
after(async () => await configured[Symbol.asyncDispose]());

let addresses = 0;
function newCaller(): string {
  addresses += 1;
  return `127.4.${Math.floor(addresses / 250)}.${(addresses % 250) + 1}`;
}

async function exhausted(of: TestGateway, from: string): Promise<string> {
  for (let count = 0; count < 2; count += 1) await of.request('/user', { from });
  return from;
}

test('a primary refusal has the form that clients know', async () => {
  const from = await exhausted(gateway, newCaller());
  const { headers: before } = await gateway.request('/rate_limit', { from });

  const { status, statusText, headers, body } = await gateway.request('/user', { from });

  assert.deepEqual([status, statusText], [403, 'Forbidden']);
  assert.equal(
    body,
    JSON.stringify({
      message: `API rate limit exceeded for ${from}.`,
      documentation_url: '/rate_limit#primary-rate-limits',
    }),
  );
  const { date, connection, 'keep-alive': keepAlive, ...others } = headers;
  assert.deepEqual(others, {
    'x-ratelimit-limit': '2',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-used': '2',
    'x-ratelimit-reset': before['x-ratelimit-reset'],
    'x-ratelimit-resource': 'core',
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(body.length),
  });
  assert.ok(date !== undefined && connection === 'keep-alive' && keepAlive !== undefined);
});

test('a secondary refusal has its own words, reason and wait, and shows the remaining quota', async () => {
  const from = newCaller();
  await gateway.request('/gists', { from, method: 'POST' });

  const { status, statusText, headers, body } = await gateway.request('/gists', { from, method: 'POST' });

  assert.deepEqual([status, statusText], [403, 'Secondary rate limit exceeded']);
  assert.equal(
    body,
    JSON.stringify({
      message: 'You have exceeded a secondary rate limit. Please wait a few minutes before you try again.',
      documentation_url: '/rate_limit#secondary-rate-limits',
    }),
  );
  const wait = Number(headers['retry-after']);
  assert.ok(wait > 55 && wait <= 61, String(wait));
  assert.deepEqual([headers['x-ratelimit-used'], headers['x-ratelimit-remaining']], ['1', '1']);
  assert.equal(headers['content-type'], 'application/json; charset=utf-8');
});

test('429 can be configured', async () => {
  const from = newCaller();
  await configured.request('/gists', { from, method: 'POST' });
  const secondary = await configured.request('/gists', { from, method: 'POST' });
  await configured.request('/user', { from });
  const primary = await configured.request('/user', { from });

  assert.deepEqual([primary.status, primary.statusText], [429, 'Too Many Requests']);
  assert.deepEqual([secondary.status, secondary.statusText], [429, 'Secondary rate limit exceeded']);
});

test('HEAD is refused in the same way without a body', async () => {
  const from = newCaller();
  await gateway.request('/gists', { from, method: 'POST' });
  await gateway.request('/user', { from });
  const get = await gateway.request('/user', { from });

  const head = await gateway.request('/user', { from, method: 'HEAD' });

  assert.deepEqual([head.status, head.statusText, head.body], [403, 'Forbidden', '']);
  assert.equal(head.headers['content-length'], get.headers['content-length']);
  assert.equal(head.headers['x-ratelimit-remaining'], '0');
});

test('a secondary refusal of HEAD says so in its reason', async () => {
  await using pointless = await TestGateway.start({ upstream: upstream.url, secondary: { restPoints: { limit: 0 } } });

  const head = await pointless.request('/user', { method: 'HEAD' });

  assert.deepEqual([head.status, head.statusText, head.body], [403, 'Secondary rate limit exceeded', '']);
  assert.ok(Number(head.headers['retry-after']) >= 1);
});

const names: readonly (readonly [authorization: string, name: string])[] = [
  ['Bearer personal', 'user ID 42'],
  ['Bearer installation', 'installation ID 8'],
  ['Bearer workflow', 'repository ID 9'],
  [`Basic ${Buffer.from('client:secret').toString('base64')}`, 'app ID 7'],
];
for (const [authorization, name] of names) {
  test(`a refusal names the caller: ${name}`, async () => {
    const headers = { authorization };
    for (let count = 0; count < 2; count += 1) await gateway.request('/user', { headers });

    const { body } = await gateway.request('/user', { headers });

    assert.equal((JSON.parse(body) as { message: string }).message, `API rate limit exceeded for ${name}.`);
  });
}

test('the upstream sees nothing of refused requests', async () => {
  const from = await exhausted(gateway, newCaller());
  const before = upstream.received.length;

  await gateway.request('/user', { from, method: 'POST', body: 'x'.repeat(100_000) });
  await gateway.request('/graphql', { from: '127.4.9.9', method: 'POST', body: '{}', token: 'wrong' });

  assert.equal(upstream.received.length, before);
});

test('a connection goes on after a refusal, also of a request with a body', async () => {
  const from = await exhausted(gateway, newCaller());

  const refused = await gateway.request('/user', { from, method: 'POST', body: 'x'.repeat(200_000) });
  const status = await gateway.request('/rate_limit', { from });

  assert.deepEqual([refused.status, status.status], [403, 200]);
});

async function limited(of: TestGateway, key: string): Promise<LimitedCaller | undefined> {
  return (await askLimited(of.adminSocket)).find((each) => each.key === key);
}

test('a caller that goes on while limited is counted, in the log at 1, 10 and 100 times, and is not banned by default', async () => {
  const from = await exhausted(gateway, newCaller());

  for (let count = 0; count < 120; count += 1) await gateway.request('/zen', { from });
  const found = await limited(gateway, `ip:${from}`);
  const other = await gateway.request('/rate_limit', { from });

  assert.deepEqual(
    { ...found, untilSeconds: 0 },
    { key: `ip:${from}`, refusedBy: 'primary', where: 'core', untilSeconds: 0, refused: 120 },
  );
  const linesOf = () => gateway.log.filter((line) => line.msg === 'refused' && line['caller'] === `ip:${from}`);
  await eventually('three lines are in the log', async () => linesOf().length >= 3);
  const lines = linesOf();
  assert.deepEqual(
    lines.map((line) => line['repeated']),
    [1, 10, 100],
  );
  assert.deepEqual(
    [lines[0]?.['kind'], lines[0]?.['limit'], lines[0]?.['endpoint']],
    ['primary', 'primary', 'GET /zen'],
  );
  assert.equal(other.status, 200);
});

const ban = { refusals: 5, banSeconds: 3 };

test('a ban, where it is configured, answers everything with 403 for its time', async () => {
  await using strict = await TestGateway.start({ ...settings, ban });
  const from = newCaller();
  await strict.request('/gists', { from, method: 'POST' });
  const refusals = [];
  for (let count = 0; count < 5; count += 1) refusals.push(await strict.request('/gists', { from, method: 'POST' }));

  const banned = await strict.request('/user', { from });
  const status = await strict.request('/rate_limit', { from });
  const found = await limited(strict, `ip:${from}`);
  const other = await strict.request('/user', { from: newCaller() });
  await sleep(Number(banned.headers['retry-after']) * 1000);
  const later = await strict.request('/user', { from });

  assert.deepEqual(new Set(refusals.map(({ body }) => body)).size, 1);
  assert.deepEqual([banned.status, banned.statusText], [403, 'Secondary rate limit exceeded']);
  assert.match(banned.body, /have been blocked\. Please wait a few minutes before you try again\./);
  assert.match(banned.body, /#secondary-rate-limits/);
  assert.ok(Number(banned.headers['retry-after']) <= 3 && Number(banned.headers['retry-after']) >= 1);
  assert.deepEqual([banned.headers['x-ratelimit-used'], banned.headers['x-ratelimit-limit']], ['1', '2']);
  assert.equal(status.status, 403);
  assert.deepEqual([found?.refusedBy, found?.refused], ['ban', 7]);
  assert.deepEqual([other.status, later.status], [200, 200]);
});

test('a limit in shadow mode counts, logs and is in the metrics, and does not refuse', async () => {
  await using shy = await TestGateway.start({ ...settings, shadow: ['primary', 'content-minute'] });
  const from = newCaller();
  const answers = [];
  for (let count = 0; count < 4; count += 1) answers.push(await shy.request('/user', { from }));
  const content = [await shy.request('/gists', { from, method: 'POST' })];
  content.push(await shy.request('/gists', { from, method: 'POST' }));

  const line = await shy.logged('would have been refused');
  const metrics = await shy.metrics();

  assert.deepEqual(
    [...answers, ...content].map(({ status }) => status),
    [200, 200, 200, 200, 200, 200],
  );
  assert.deepEqual(
    answers.map(({ headers }) => headers['x-ratelimit-remaining']),
    ['1', '0', '0', '0'],
  );
  assert.equal(content[1]?.headers['x-ratelimit-used'], '2');
  assert.deepEqual([line['caller'], line['limit'], line['endpoint']], [`ip:${from}`, 'primary', 'GET /user']);
  assert.equal(metrics.get('gantry_gateway_requests_shadowed_total{limit="primary"}'), 4);
  assert.equal(metrics.get('gantry_gateway_requests_shadowed_total{limit="content-minute"}'), 1);
  assert.equal(metrics.get('gantry_gateway_requests_refused_total{limit="primary"}'), 0);
  assert.deepEqual(await askLimited(shy.adminSocket), []);
});

test('a limit that is not in shadow mode refuses beside one that is', async () => {
  await using half = await TestGateway.start({ ...settings, shadow: ['primary'] });
  const from = newCaller();
  const statuses: number[] = [];

  for (let count = 0; count < 2; count += 1) {
    statuses.push((await half.request('/gists', { from, method: 'POST' })).status);
  }
  const { windows } = await askCaller(half.adminSocket, `ip:${from}`);

  assert.deepEqual(statuses, [200, 403]);
  assert.equal(windows.find(({ name }) => name === 'core')?.used, 1);
});

test('the IETF fields of the upstream, which contradict the limits, are dropped', async () => {
  upstream.on('/ietf', (_request, response) => {
    response.writeHead(200, { ratelimit: '"upstream";r=1', 'ratelimit-policy': '"upstream";q=1' }).end();
  });

  const { status, headers } = await gateway.request('/ietf', { from: newCaller() });

  assert.deepEqual([status, headers['ratelimit'], headers['ratelimit-policy']], [200, undefined, undefined]);
});
