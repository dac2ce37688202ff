import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import { type Answer, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

const PAGE = 'https://page.example';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());
upstream.on('/for-all', (_req, res) => void res.writeHead(200, { 'access-control-allow-origin': '*' }).end());
upstream.on('/for-one', ({ method, headers: { origin = '' } }, res) => {
  const allowed = {
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': 'etag',
  };
  const isAllowed = origin === PAGE;
  res.writeHead(method === 'OPTIONS' ? 204 : 200, isAllowed ? allowed : {}).end();
});

const preflight = {
  origin: PAGE,
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization',
};

function shown({ status, headers }: Answer): readonly (string | number | undefined)[] {
  const allow = (name: string) => headers[`access-control-allow-${name}`];
  return [status, allow('origin'), allow('credentials'), headers['x-ratelimit-used']];
}

test('preflights spend no quota, are answered by the upstream, and have points', async () => {
  await using gateway = await TestGateway.start({
    upstream: upstream.url,
    limits: { anonymous: 1 },
    secondary: { restPoints: { limit: 3 } },
  });
  const before = upstream.received.length;

  const asked: Answer[] = [];
  for (let n = 0; n < 3; n += 1) {
    asked.push(await gateway.request('/for-one', { method: 'OPTIONS', headers: preflight }));
  }
  const passed = upstream.received.length - before;
  const tooMany = await gateway.request('/for-one', { method: 'OPTIONS', headers: preflight });
  const request = await gateway.request('/for-one', { headers: { origin: PAGE } });
  const plain = await gateway.request('/for-one', { method: 'OPTIONS', headers: { origin: PAGE } });

  assert.deepEqual(
    asked.map(shown),
    asked.map(() => [204, PAGE, 'true', '0']),
  );
  assert.equal(passed, 3);
  assert.deepEqual(shown(tooMany), [403, PAGE, 'true', '0']);
  assert.deepEqual([request.status, plain.status], [200, 403]);
});

test('answers of the gateway may be read by the pages that may read those of the upstream', async () => {
  await using gateway = await TestGateway.start({ upstream: upstream.url, limits: { anonymous: 2 } });
  const ask = async (path: string, origin: string, token?: string) =>
    await gateway.request(path, { headers: { origin }, ...(token && { token }) });

  const unknown = await ask('/for-one', PAGE, 'wrong');
  const allowed = await ask('/for-one', PAGE);
  const refused = await ask('/for-one', PAGE);
  const other = await ask('/for-one', 'https://other.example');
  const wrong = await ask('/for-one', PAGE, 'wrong');
  const withoutOrigin = await gateway.request('/for-one');

  assert.deepEqual([unknown, allowed, refused, other, wrong, withoutOrigin].map(shown), [
    [401, undefined, undefined, '1'],
    [200, PAGE, 'true', '2'],
    [403, PAGE, 'true', '2'],
    [403, undefined, undefined, '2'],
    [403, PAGE, 'true', '2'],
    [403, undefined, undefined, '2'],
  ]);
  for (const { headers } of [allowed, refused]) {
    assert.match(headers['access-control-expose-headers'] ?? '', /x-ratelimit-remaining/);
  }
  assert.match(allowed.headers['access-control-expose-headers'] ?? '', /^etag, /);
  assert.equal(refused.headers['vary'], 'Origin');
});

test('answers that the upstream opens to all pages are open in the gateway too', async () => {
  await using gateway = await TestGateway.start({ upstream: upstream.url, limits: { anonymous: 1 } });
  await gateway.request('/for-all', { headers: { origin: PAGE } });

  const refused = await gateway.request('/for-all', { headers: { origin: 'https://other.example' } });

  assert.deepEqual(shown(refused), [403, '*', undefined, '1']);
});

test('the policy of the gateway itself lets all pages send and read', async () => {
  await using gateway = await TestGateway.start({ upstream: upstream.url, limits: { anonymous: 1 }, cors: 'own' });
  const before = upstream.received.length;

  const asked = await gateway.request('/for-one', { method: 'OPTIONS', headers: preflight });
  const answer = await gateway.request('/for-one', { headers: { origin: PAGE } });
  const refused = await gateway.request('/for-one', { headers: { origin: PAGE } });

  assert.deepEqual([asked, answer, refused].map(shown), [
    [204, '*', undefined, '0'],
    [200, '*', undefined, '1'],
    [403, '*', undefined, '1'],
  ]);
  assert.equal(asked.headers['access-control-allow-headers'], 'authorization');
  assert.match(asked.headers['access-control-allow-methods'] ?? '', /DELETE/);
  assert.deepEqual([asked.body, asked.headers['content-length']], ['', undefined]);
  assert.equal(refused.headers['access-control-expose-headers'], '*');
  assert.equal(upstream.received.length, before + 1);
});

test('without a policy preflights are requests like others, and nothing is added', async () => {
  await using gateway = await TestGateway.start({ upstream: upstream.url, limits: { anonymous: 2 }, cors: 'off' });

  const asked = await gateway.request('/for-one', { method: 'OPTIONS', headers: preflight });
  const answer = await gateway.request('/for-one', { headers: { origin: PAGE } });
  const refused = await gateway.request('/for-one', { headers: { origin: PAGE } });

  assert.deepEqual([asked, answer, refused].map(shown), [
    [204, PAGE, 'true', '1'],
    [200, PAGE, 'true', '2'],
    [403, undefined, undefined, '2'],
  ]);
  assert.equal(answer.headers['access-control-expose-headers'], 'etag');
});
