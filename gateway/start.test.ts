import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { test } from 'node:test';

import { TestGateway } from './tests/test-gateway.ts';
import { TestUpstream } from './tests/test-upstream.ts';

test('an upstream is all that a gateway needs', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({}, ['--upstream', upstream.url, '--listen', '127.0.0.1:0']);

  const answer = await gateway.request('/user');

  assert.equal(answer.status, 200);
  assert.deepEqual(JSON.parse(answer.body), { method: 'GET', url: '/user', body: '' });
  assert.equal(answer.headers['x-ratelimit-limit'], '60');
  assert.equal(answer.headers['x-ratelimit-remaining'], '59');
});

test('a gateway listens on a Unix socket that everybody may use', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({
    upstream: upstream.url,
    listen: 'unix:{folder}/gateway.sock',
  });

  const answer = await gateway.request('/user');

  assert.equal(answer.status, 200);
  assert.equal(answer.headers['x-ratelimit-used'], '1');
  assert.equal(statSync(gateway.url.slice('unix:'.length)).mode & 0o777, 0o666);
});
