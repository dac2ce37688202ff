import assert from 'node:assert/strict';
import { test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

type Line = { request?: string; path?: string; method?: string; status?: number };

test('a request has a name in the answer and in the log, its own or one that the client gives it', async () => {
  await using engine = await TestEngine.start({ flags: ['--log-level=debug', '--bridge=none'] });
  const id = await engine.create(['true'], { HostConfig: { NetworkMode: 'none' } });
  const named = (path: string, name: string) => engine.request('GET', path, { headers: { 'X-Request-Id': name } });
  const lines = (): Line[] =>
    engine.log
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Line);

  const mine = await named(`/containers/json?all=1&secret=1`, 'mine.1');
  const atOnce = await named(`/containers/${id}/json`, 'mine.2');
  const refused = await engine.get('/containers/nope/json');
  const odd = await named('/info', 'two words');

  assert.deepEqual([mine.headers['x-request-id'], atOnce.headers['x-request-id']], ['mine.1', 'mine.2']);
  const own = String(refused.headers['x-request-id']);
  assert.match(own, /^[0-9a-f]{8}-\d+$/);
  assert.match(String(odd.headers['x-request-id']), /^[0-9a-f]{8}-\d+$/);
  const line = lines().find(({ request }) => request === 'mine.1');
  assert.deepEqual([line?.method, line?.path, line?.status], ['GET', '/v1.24/containers/json', 200]);
  assert.equal(lines().find(({ request }) => request === own)?.status, 404);
  assert.ok(!engine.log.includes('secret'));
});
