import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, rm } from 'node:fs/promises';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { BothEngines } from '../clients/both-engines.ts';
import { said } from './said.ts';

const execute = promisify(execFile);

const FILE_SYSTEMS = {
  ext4: { make: ['mkfs.ext4', '-q', '-O', 'quota,project', '-E', 'quotatype=prjquota'], option: 'prjquota' },
  xfs: { make: ['mkfs.xfs', '-q'], option: 'pquota' },
};
const SIZED = { NetworkMode: 'none', StorageOpt: { size: '20m' } };
/** Folders of the host, for programs that busybox lacks. */
const HOSTS_PROGRAMS = ['/usr:/usr:ro', '/lib:/lib:ro', '/lib64:/lib64:ro'];
/** Writes as much as it can of so many megabytes, and tells how many MiB the file has. */
const write = (megabytes: number): string =>
  `dd if=/dev/zero of=/file bs=1M count=${megabytes} 2>/dev/null || echo full; sync; echo $(($(stat -c %s /file) / 1048576))`;
const SIZE_OF_ROOT = `df -k / | awk 'NR==2 {print $2}'`;

for (const [name, { make, option }] of Object.entries(FILE_SYSTEMS)) {
  suite(`a size of the writable layer, on ${name}`, { concurrency: false }, () => {
    const [image, folder] = [`/var/tmp/${name}.image`, `/mnt/${name}`];
    const oldTmp = process.env.TMPDIR;
    before(async () => {
      await execute('truncate', ['--size=600M', image]);
      await execute(make[0]!, [...make.slice(1), image]);
      await mkdir(folder, { recursive: true });
      await execute('mount', ['-o', `loop,${option}`, image, folder]);
      process.env.TMPDIR = folder; // where the engines have their roots
    });
    after(async () => {
      process.env.TMPDIR = oldTmp ?? '/tmp';
      await execute('umount', [folder]);
      await rm(image);
    });

    test('it limits the written bytes, and is the size that df shows, as with dockerd', async () => {
      await using engines = await BothEngines.start();
      const script = `${SIZE_OF_ROOT}; ${write(40)}; rm /file; ${write(10)}`;

      const ours = await said(engines.ours, script, SIZED);

      assert.match(ours, /^20480\nfull\n(1[89]|20)\n10\n$/);
      // dockerd takes a size on xfs alone.
      if (name === 'xfs') assert.match(await said(engines.theirs, script, SIZED), /^20480\nfull\n(1[89]|20)\n10\n$/);
    });

    test('others are not limited, and each container has a size of its own, also after a SIGKILL of the daemon', async () => {
      await using engine = await TestEngine.start();
      const side = { name: 'gantry', api: engine, directory: engine.directory, socketPath: engine.socketPath } as const;
      const keeper = await engine.run(['sh', '-c', `${write(15)}; sleep 1000`], { HostConfig: SIZED });
      const removed = await engine.run(['true'], { HostConfig: SIZED });
      await engine.wait(removed);
      await engine.delete(`/containers/${removed}`);
      await engine.kill();
      await engine.startAgain();

      assert.equal(await said(side, write(15), SIZED), '15\n');
      assert.equal(await said(side, write(30), {}), '30\n');
      await engine.post(`/containers/${keeper}/restart?t=0`);
      assert.match(await said(side, write(40), SIZED), /^full\n(1[89]|20)\n$/);
    });

    test('root of the container does not leave its project', async () => {
      await using engine = await TestEngine.start();
      const side = { name: 'gantry', api: engine, directory: engine.directory, socketPath: engine.socketPath } as const;

      for (const Runtime of ['crun', 'runc']) {
        const output = await said(side, 'touch /f; /usr/bin/chattr -p 0 /f; /usr/bin/lsattr -p /f', {
          ...SIZED,
          ...{ Runtime, Binds: HOSTS_PROGRAMS },
        });

        assert.match(output, /Operation not permitted/);
        assert.match(output, /119[0-9]{7} .*\/f/); // 0x47000000 and above
      }
    });

    test('a volume has a size too, also after a SIGKILL of the daemon, and others have none', async () => {
      await using engine = await TestEngine.start();
      const side = { name: 'gantry', api: engine, directory: engine.directory, socketPath: engine.socketPath } as const;
      const sized = { name: 'sized', size: '20m' };
      for (const { name, size } of [sized, { name: 'other', size: '30m' }, { name: 'plain', size: '0' }]) {
        const { status } = await engine.post('/volumes/create', { Name: name, DriverOpts: { size } });
        assert.equal(status, 201);
      }
      const writeTo = async (volume: string, megabytes: number): Promise<string> =>
        await said(side, `${SIZE_OF_ROOT.replace(' / ', ' /v ')}; ${write(megabytes).replaceAll('/file', '/v/file')}`, {
          NetworkMode: 'none',
          Binds: [`${volume}:/v`],
        });

      assert.match(await writeTo('sized', 40), /^20480\nfull\n(1[89]|20)\n$/);
      assert.match(await writeTo('other', 25), /^30720\n25\n$/);
      assert.match(await writeTo('plain', 40), /\n40\n$/);
      await engine.kill();
      await engine.startAgain();
      assert.match(await writeTo('sized', 40), /^20480\nfull\n(1[89]|20)\n$/);
      await engine.delete('/volumes/sized');
      await engine.post('/volumes/create', { Name: 'sized' });
      assert.match(await writeTo('sized', 40), /\n40\n$/);
    });

    test('a size that is none is refused', async () => {
      await using engine = await TestEngine.start();
      for (const size of ['much', '0', '-1']) {
        const body = { Image: 'busybox', HostConfig: { StorageOpt: { size } } };
        const { status, body: answer } = await engine.post('/containers/create', body);
        assert.deepEqual([status, answer], [400, { message: `invalid size: '${size}'` }]);
      }
    });
  });
}

test('without quotas of projects a size is refused with the reason', async () => {
  await using engine = await TestEngine.start();

  const { status, raw } = await engine.post('/containers/create', { Image: 'busybox', HostConfig: SIZED });

  assert.equal(status, 400);
  assert.match(
    raw.toString(),
    /supported only for overlay over xfs with 'pquota' mount option, or ext4 with 'prjquota'/,
  );
  assert.deepEqual((await engine.get('/containers/json?all=1')).body, []);

  const volume = await engine.post('/volumes/create', { Name: 'sized', DriverOpts: { size: '10m' } });

  const message = 'create sized: quota size requested but no quota support';
  assert.deepEqual([volume.status, volume.body], [400, { message }]);
  assert.deepEqual((await engine.get<{ Volumes: unknown[] }>('/volumes')).body.Volumes, []);
});
