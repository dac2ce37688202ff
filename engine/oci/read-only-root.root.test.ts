import assert from 'node:assert/strict';
import { test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const TRY_ALL = 'for f in / /sys/fs/cgroup /sys/fs/cgroup/* /sys /proc/sys /etc; do mkdir $f/x && echo $f; done; true';

for (const Runtime of ['crun', 'runc']) {
  test(`with a read-only root there is no place to write to, by ${Runtime}`, async () => {
    await using engine = await TestEngine.start();
    const id = await engine.run(['sh', '-c', TRY_ALL], { HostConfig: { ReadonlyRootfs: true, Runtime } });

    assert.equal(await engine.wait(id), 0);

    const { stdout, stderr } = await engine.output(id);
    assert.equal(stdout, '');
    assert.match(stderr, /cgroup/);
  });
}
