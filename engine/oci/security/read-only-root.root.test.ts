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

  test(`the cgroups are no place to write to with a writable root either, by ${Runtime}`, async () => {
    await using engine = await TestEngine.start();
    const inside = ['sh', '-c', `mkdir /sys/fs/cgroup/mine/sub; ${TRY_ALL}`];
    const usual = await engine.run(inside, { HostConfig: { Runtime } });
    const further = await engine.run(inside, { HostConfig: { Runtime, Tmpfs: { '/sys/fs/cgroup/mine': '' } } });
    const own = await engine.run(inside, { HostConfig: { Runtime, Tmpfs: { '/sys/fs/cgroup': '' } } });

    for (const [id, places] of [
      [usual, ['/', '/etc']],
      [further, ['/', '/sys/fs/cgroup/mine', '/etc']],
      [own, ['/', '/sys/fs/cgroup', '/etc']],
    ] as const) {
      assert.equal(await engine.wait(id), 0);
      assert.deepEqual((await engine.output(id)).stdout.trim().split('\n'), places);
    }
  });
}
