import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';

import { busyboxLayer, imageArchive } from '../../tests/busybox-image.ts';
import { TarWriter } from '../../tests/tar-writer.ts';
import { TestEngine } from '../../tests/test-engine.ts';

type Message = { message: string };
type Volume = { Labels: Record<string, string> | null };

/** Busybox with links to what is there and to what is not. */
function linkedImage(): Buffer {
  const tar = new TarWriter();
  tar.add({ name: 'absolute', type: 'symlink', linkName: '/gone/one' });
  tar.add({ name: 'relative', type: 'symlink', linkName: 'gone/two' });
  tar.add({ name: 'chain', type: 'symlink', linkName: '/absolute/../three' });
  tar.add({ name: 'alias', type: 'symlink', linkName: '/srv/full' });
  tar.add({ name: 'loop', type: 'symlink', linkName: '/loop' });
  tar.add({ name: 'srv/full/', type: 'directory', mode: 0o755 });
  tar.add({ name: 'srv/full/file', content: 'x' });
  return imageArchive([busyboxLayer(), tar.end()], ['linked:latest']);
}

suite('mounts of a container', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
    await engine.post('/images/load?quiet=1', linkedImage());
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function said(script: string, body: Record<string, unknown>): Promise<string> {
    const id = await engine.run(['sh', '-c', script], body);
    await engine.wait(id);
    const { stdout, stderr } = await engine.output(id);
    await engine.delete(`/containers/${id}?v=1`);
    return (stdout + stderr).trim();
  }

  for (const [path, place] of [
    ['/absolute', '/gone/one'],
    ['/absolute/in/it', '/gone/one/in/it'],
    ['/relative/x', '/gone/two/x'],
    ['/chain/x', '/gone/three/x'],
    ['/alias/new', '/srv/full/new'],
  ] as const) {
    for (const [what, body] of [
      ['a volume', { Volumes: { [path]: {} } }],
      ['a tmpfs', { HostConfig: { Tmpfs: { [path]: '' } } }],
    ] as const) {
      test(`${what} at ${path} is at ${place}, where the links of the image lead`, async () => {
        assert.equal(await said(`grep -c " ${place} " /proc/mounts`, { Image: 'linked', ...body }), '1');
      });
    }
  }

  test('a volume behind an absolute link starts with the files of the image', async () => {
    assert.equal(
      await said('ls /alias /srv/full', { Image: 'linked', Volumes: { '/alias': {} } }),
      '/alias:\nfile\n\n/srv/full:\nfile',
    );
  });

  for (const [path, message] of [
    ['//', "invalid volume specification: '//': invalid specification: destination can't be '/'"],
    ['/a/../..', "invalid volume specification: '/a/../..': invalid specification: destination can't be '/'"],
    ['/loop/x', '/loop/x: too many links'],
    ['/etc/passwd', 'cannot mount volume over existing file, file exists /etc/passwd'],
    ['/etc/passwd/x', '/etc/passwd/x: not a directory'],
  ] as const) {
    test(`a volume at ${path} is refused when the container is made`, async () => {
      const answer = await engine.post<Message>('/containers/create', {
        Image: 'linked',
        Cmd: ['true'],
        Volumes: { [path]: {} },
      });

      assert.ok(answer.status === 400 || answer.status === 500, String(answer.status));
      assert.equal(answer.body.message, message);
    });
  }

  test('a volume of Mounts is kept, labelled and shown', async () => {
    const mount = { Type: 'volume', Source: 'mounted', Target: '/data', VolumeOptions: { Labels: { a: 'b' } } };
    await said('echo kept >/data/file', { HostConfig: { Mounts: [mount] } });

    const id = await engine.create(['true'], { HostConfig: { Mounts: [mount] } });
    const { Mounts, HostConfig } = (await engine.get<Inspect>(`/containers/${id}/json`)).body;

    assert.deepEqual(HostConfig.Mounts, [mount]);
    assert.deepEqual(
      Mounts.map(({ Type, Name, Destination, RW }) => [Type, Name, Destination, RW]),
      [['volume', 'mounted', '/data', true]],
    );
    assert.deepEqual((await engine.get<Volume>('/volumes/mounted')).body.Labels, { a: 'b' });
    assert.equal(await said('cat /data/file', { HostConfig: { Mounts: [{ ...mount, ReadOnly: true }] } }), 'kept');
  });

  test('an anonymous volume of Mounts goes with its container', async () => {
    const id = await engine.create(['true'], { HostConfig: { Mounts: [{ Type: 'volume', Target: '/data' }] } });
    const { Name } = (await engine.get<Inspect>(`/containers/${id}/json`)).body.Mounts[0]!;

    await engine.delete(`/containers/${id}?v=1`);

    assert.equal((await engine.get(`/volumes/${Name}`)).status, 404);
  });

  test('a bind of Mounts wants its folder at the start as well', async () => {
    const folder = join(engine.directory, 'wanted');
    mkdirSync(folder);
    const id = await engine.create(['true'], {
      HostConfig: { Mounts: [{ Type: 'bind', Source: folder, Target: '/m' }] },
    });
    execFileSync('rmdir', [folder]);

    const answer = await engine.post<Message>(`/containers/${id}/start`);

    assert.equal(
      answer.body.message,
      `invalid mount config for type "bind": bind source path does not exist: ${folder}`,
    );
    assert.equal(existsSync(folder), false);
  });

  test('a shared bind passes mounts on to the host; of a private mount it is refused', async () => {
    const folder = join(engine.directory, 'shared');
    mkdirSync(join(folder, 'inner'), { recursive: true });
    const Binds = [`${folder}:/m:rshared`];
    const id = await engine.create(['sh', '-c', 'mount -t tmpfs x /m/inner && touch /m/inner/seen'], {
      HostConfig: { Binds, CapAdd: ['SYS_ADMIN'], SecurityOpt: ['seccomp=unconfined', 'apparmor=unconfined'] },
    });

    execFileSync('mount', ['--bind', folder, folder]);
    try {
      execFileSync('mount', ['--make-private', folder]);
      const refused = await engine.post<Message>(`/containers/${id}/start`);
      execFileSync('mount', ['--make-shared', folder]);
      const started = await engine.post(`/containers/${id}/start`);
      await engine.wait(id);

      assert.equal(refused.body.message, `path ${folder} is mounted on ${folder} but it is not a shared mount`);
      assert.equal(started.status, 204);
      assert.ok(existsSync(join(folder, 'inner/seen')));
    } finally {
      execFileSync('umount', ['-R', folder]);
    }
  });

  test('all devices of a folder are given, and those of its folders', async () => {
    const folder = join(engine.directory, 'devices');
    mkdirSync(join(folder, 'sub'), { recursive: true });
    execFileSync('mknod', [join(folder, 'sub/zeros'), 'c', '1', '5']);
    writeFileSync(join(folder, 'no-device'), '');
    const Devices = [{ PathOnHost: folder, PathInContainer: '/dev/some', CgroupPermissions: 'rwm' }];

    assert.equal(
      await said('find /dev/some -type c; find /dev/some -type f; head -c 2 /dev/some/sub/zeros | wc -c', {
        HostConfig: { Devices },
      }),
      '/dev/some/sub/zeros\n2',
    );
  });

  test('an init is the first process', async () => {
    assert.equal(
      await said('cat /proc/1/cmdline | tr "\\0" " " | cut -c1-20', { HostConfig: { Init: true } }),
      '/sbin/docker-init --',
    );
  });
});
