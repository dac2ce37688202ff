import assert from 'node:assert/strict';
import { test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { Inspect } from '../schema.ts';

test('an inspect shows changes around a container since the last one', async () => {
  await using engine = await TestEngine.start();
  const shown = async (): Promise<Inspect> => (await engine.get<Inspect>('/containers/web/json')).body;
  await engine.run(['sleep', '1000'], {}, 'db');
  await engine.run(['sleep', '1000'], { HostConfig: { Links: ['db:data'] } }, 'web');
  const before = await shown();

  const { body: exec } = await engine.post<{ Id: string }>('/containers/web/exec', { Cmd: ['sleep', '1000'] });
  await engine.post(`/exec/${exec.Id}/start`, { Detach: true });
  const withExec = await shown();
  await engine.post('/containers/db/rename?name=store');
  const withName = await shown();

  assert.deepEqual([before.ExecIDs, before.HostConfig.Links], [null, ['/db:/web/data']]);
  assert.deepEqual(withExec.ExecIDs, [exec.Id]);
  assert.deepEqual(withName.HostConfig.Links, ['/store:/web/data']);
});
