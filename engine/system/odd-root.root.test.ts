import assert from 'node:assert/strict';
import { test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

test('a data root with commas, colons and backslashes in its name works', async () => {
  await using engine = await TestEngine.start({ prefix: String.raw`gantry-test,a:b\c=d-` });
  const body = { HostConfig: { Binds: ['etc:/etc'] } }; // filled from the image, which the daemon itself mounts for that

  const id = await engine.run(['sh', '-c', 'echo written >/file; cat /file /etc/passwd'], body);

  assert.equal(await engine.wait(id), 0);
  assert.match((await engine.output(id)).stdout, /^written\nroot:/);
  assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
  assert.equal(await engine.wait(id), 0);
});
