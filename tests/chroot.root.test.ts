import assert from 'node:assert/strict';
import { test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

test('execs of a daemon in a chroot are in the container, not on the machine', async () => {
  const chroot = 'mount --rbind / /mnt && exec chroot /mnt "$@"';
  await using engine = await TestEngine.start({ within: ['unshare', '--mount', 'sh', '-c', chroot, 'sh'] });
  const id = await engine.run(['sh', '-c', 'echo own > /own; sleep 1000']);
  while ((await engine.docker('exec', id, 'cat', '/own')).stdout !== 'own\n') continue;

  const { stdout } = await engine.docker('exec', id, 'ls', '/');

  assert.equal(stdout.split('\n').includes('boot'), false, stdout);
  const code = await engine.wait(await engine.run(['unshare', '-U', 'true'], { HostConfig: { Privileged: true } }));
  assert.equal(code, 0);
});
