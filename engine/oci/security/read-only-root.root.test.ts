import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const TRY_ALL = 'for f in / /sys/fs/cgroup /sys/fs/cgroup/* /sys /proc/sys /etc; do mkdir $f/x && echo $f; done; true';

suite('places that are read-only', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  for (const Runtime of ['crun', 'runc']) {
    test(`with a read-only root there is no place to write to, by ${Runtime}`, async () => {
      const id = await engine.run(['sh', '-c', TRY_ALL], { HostConfig: { ReadonlyRootfs: true, Runtime } });

      assert.equal(await engine.wait(id), 0);

      const { stdout, stderr } = await engine.output(id);
      assert.equal(stdout, '');
      assert.match(stderr, /cgroup/);
    });

    test(`with a read-only root the files of /etc are read-only, unless the client mounts its own, by ${Runtime}`, async () => {
      const script = 'cd /etc; for f in hosts hostname resolv.conf; do (echo x >>$f) && echo $f; done; true';
      const writtenIn = async (body: Record<string, unknown>) => {
        const id = await engine.run(['sh', '-c', script], { HostConfig: { Runtime, ...body } });
        assert.equal(await engine.wait(id), 0);
        return (await engine.output(id)).stdout.trim().split('\n');
      };
      const own = `${engine.directory}/own`;
      writeFileSync(own, '');

      assert.deepEqual(await writtenIn({ ReadonlyRootfs: true }), ['']);
      assert.deepEqual(await writtenIn({ ReadonlyRootfs: true, Privileged: true }), ['']);
      assert.deepEqual(await writtenIn({ ReadonlyRootfs: true, Binds: [`${own}:/etc/hosts`] }), ['hosts']);
      assert.deepEqual(await writtenIn({}), ['hosts', 'hostname', 'resolv.conf']);

      const lender = await engine.run(['sleep', '1000']);
      assert.deepEqual(await writtenIn({ ReadonlyRootfs: true, NetworkMode: `container:${lender}` }), ['']);
    });

    test(`the cgroups are no place to write to with a writable root either, by ${Runtime}`, async () => {
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
});
