import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxLayer, imageArchive } from '@gantry/testing/busybox-image.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

/** An image with links where mounts are wanted, also at the engine's own mount points. */
function linkedImage(): Buffer {
  const tar = new TarWriter();
  const links = {
    dangling: '/made/later',
    second: 'dangling',
    dir: 'target',
    'to-proc': '/proc',
    'to-file': 'target/file',
    loop: 'loop',
    'etc/hosts': '../run/hosts',
    'etc/hostname': '/proc/sys/kernel/hostname',
    'etc/resolv.conf': '../run/systemd/resolve/stub-resolv.conf',
  };
  for (const [name, linkName] of Object.entries(links)) tar.add({ name, type: 'symlink', linkName });
  tar.add({ name: 'target/', type: 'directory', mode: 0o755 });
  tar.add({ name: 'target/file', content: 'of the image\n' });
  return imageArchive([busyboxLayer(), tar.end()], ['linked:latest']);
}

suite('places of mounts in an image with links', { concurrency: false }, () => {
  let engine: TestEngine;
  /** A folder of the host with a file. */
  let folder: string;
  before(async () => {
    engine = await TestEngine.start();
    await engine.post('/images/load?quiet=1', linkedImage());
    folder = join(engine.directory, 'bound');
    mkdirSync(folder);
    writeFileSync(join(folder, 'file'), 'of the host\n');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function said(script: string, body: Record<string, unknown>): Promise<string[]> {
    const id = await engine.run(['sh', '-c', script], { Image: 'linked', ...body });
    await engine.wait(id);
    const { stdout, stderr } = await engine.output(id);
    await engine.delete(`/containers/${id}?v=1`);
    return (stdout + stderr).trim().split('\n');
  }

  for (const Runtime of ['crun', 'runc']) {
    test(`binds, volumes and tmpfs are mounted on the target of a dangling link, by ${Runtime}`, async () => {
      const inTarget = 'grep " /made/" /proc/mounts | cut -d" " -f2,3; cat /made/later/file /second/in/file';
      const HostConfig = { Runtime, Binds: [`${folder}:/dangling`, `${folder}:/dangling/in`] };

      const [outer, inner, ...content] = await said(inTarget, { HostConfig });
      assert.match(`${outer} ${inner}`, /^\/made\/later \w+ \/made\/later\/in \w+$/);
      assert.deepEqual(content, ['of the host', 'of the host']);

      const withTmpfs = { Runtime, Tmpfs: { '/dangling/t': '' }, Binds: ['in-target:/second'] };
      const [volume, tmpfs] = await said(inTarget, { HostConfig: withTmpfs });
      assert.match(`${volume} ${tmpfs}`, /^\/made\/later \w+ \/made\/later\/t tmpfs$/);
    });

    test(`a file is mounted on the target of a dangling link, by ${Runtime}`, async () => {
      const HostConfig = { Runtime, Binds: [`${folder}/file:/second`] };

      assert.deepEqual(await said('readlink /second; cat /made/later', { HostConfig }), ['dangling', 'of the host']);
    });

    test(`a working directory and a device are made behind dangling links, by ${Runtime}`, async () => {
      const Devices = [{ PathOnHost: '/dev/null', PathInContainer: '/second/null' }];
      const body = { WorkingDir: '/dangling/here', HostConfig: { Runtime, Devices } };

      assert.deepEqual(await said('pwd; stat -c %F /made/later/null', body), [
        '/made/later/here',
        'character special file',
      ]);
    });

    test(`files of /etc replace links of the image, by ${Runtime}`, async () => {
      const script = 'cd /etc; stat -c %F hosts hostname resolv.conf; cat hostname; grep -c localhost hosts';

      const lines = await said(script, { Hostname: 'box', HostConfig: { Runtime } });

      assert.deepEqual(lines, [...Array<string>(3).fill('regular file'), 'box', '2']);
    });

    test(`nothing is mounted at or below /proc, by ${Runtime}`, async () => {
      const inside = 'cannot be mounted because it is inside /proc';
      const otherType = 'cannot be mounted because the source is not of type proc';
      const refused: [body: Record<string, unknown>, message: string][] = [
        [{ HostConfig: { Runtime, Binds: [`${folder}:/proc`] } }, `/proc ${otherType}`],
        [{ HostConfig: { Runtime, Binds: ['vol:/proc/sys'], Privileged: true } }, `/proc/sys ${inside}`],
        [{ HostConfig: { Runtime, Tmpfs: { '/proc/fs': '' } } }, `/proc/fs ${inside}`],
        [{ HostConfig: { Runtime, Mounts: [{ Type: 'tmpfs', Target: '/proc' }] } }, `/proc ${otherType}`],
        [{ HostConfig: { Runtime }, Volumes: { '/proc/bus': {} } }, `/proc/bus ${inside}`],
        [{ HostConfig: { Runtime, Binds: ['vol:/to-proc/sys'] } }, `/to-proc/sys, which leads to /proc/sys, ${inside}`],
      ];
      for (const [body, message] of refused) {
        const id = await engine.create(['true'], { Image: 'linked', ...body });
        const answer = await engine.post<{ message: string }>(`/containers/${id}/start`);
        assert.deepEqual([answer.status, answer.body.message], [500, message]);
        await engine.delete(`/containers/${id}?v=1`);
      }

      const HostConfig = { Runtime, Binds: [`${folder}/file:/proc/cpuinfo`, '/proc:/host/proc'] };
      assert.deepEqual(await said('cat /proc/cpuinfo; ls /host/proc/1/comm', { HostConfig }), [
        'of the host',
        '/host/proc/1/comm',
      ]);
    });
  }

  test('a volume at a link gets the files of its target', async () => {
    const HostConfig = { Binds: ['of-link:/dir'] };

    assert.deepEqual(await said('cat /target/file', { HostConfig, Volumes: { '/dir/sub': {} } }), ['of the image']);
  });

  const overFiles: [destination: string, message: string][] = [
    ['/target/file', 'cannot mount volume over existing file, file exists /target/file'],
    ['/to-file', 'cannot mount volume over existing file, file exists /to-file'],
    ['/dir/file/below', 'cannot mount volume over existing file, file exists /dir/file/below'],
    ['/loop', 'too many links in /loop'],
  ];
  for (const [path, message] of overFiles) {
    test(`POST /containers/create: a volume at ${path} is refused`, async () => {
      const bodies = [
        { Volumes: { [path]: {} } },
        { HostConfig: { Binds: [`over-file:${path}`] } },
        { HostConfig: { Mounts: [{ Type: 'volume', Target: path }] } },
      ];
      const volumes = async () => (await engine.get<{ Volumes: object[] | null }>('/volumes')).body.Volumes?.length;
      await engine.post('/volumes/create', { Name: 'over-file' });
      const before = await volumes();
      const containers = (await engine.get<object[]>('/containers/json?all=1')).body.length;

      for (const body of bodies) {
        const answer = await engine.post<{ message: string }>('/containers/create', {
          Image: 'linked',
          Cmd: ['true'],
          ...body,
        });
        assert.deepEqual([answer.status, answer.body.message], [400, message]);
      }

      assert.equal(await volumes(), before);
      assert.equal((await engine.get<object[]>('/containers/json?all=1')).body.length, containers);
    });
  }

  test('an archive shows a volume at a dangling link', async () => {
    const id = await engine.create(['true'], { Image: 'linked', HostConfig: { Binds: [`${folder}:/dangling`] } });

    const { raw } = await engine.get(`/containers/${id}/archive?path=/made/later/file`);

    assert.equal(tarList(raw).get('file')?.content.toString(), 'of the host\n');
  });

  test('a mount in a circle of links fails at the start', async () => {
    const id = await engine.create(['true'], { Image: 'linked', HostConfig: { Tmpfs: { '/loop': '' } } });

    const { status, body } = await engine.post<{ message: string }>(`/containers/${id}/start`);

    assert.deepEqual([status, body.message], [500, 'too many links in /loop']);
    assert.equal((await engine.get<Inspect>(`/containers/${id}/json`)).body.State.Status, 'created');
  });
});
