import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, readlinkSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { execOf, outputOf } from '@gantry/testing/shell-lines.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

/** The subordinate ids of a user, from the machine's files. */
function firstOf(file: string): number {
  const line = readFileSync(file, 'utf8')
    .split('\n')
    .find((one) => one.startsWith('dockremap:'));
  return Number(line?.split(':')[1]);
}

for (const runtime of ['crun', 'runc']) {
  suite(`users of containers with a map, ${runtime}`, () => {
    let engine: TestEngine;
    before(async () => {
      engine = await TestEngine.start({
        version: '1.51',
        flags: ['--userns-remap=default', `--default-runtime=${runtime}`],
      });
    });
    after(async () => await engine[Symbol.asyncDispose]());

    async function pidOf(id: string): Promise<number> {
      return (await engine.get<{ State: { Pid: number } }>(`/containers/${id}/json`)).body.State.Pid;
    }

    test('root of a container is another user on the host, with exactly the map', async () => {
      const id = await engine.run(['sleep', '600']);
      const pid = await pidOf(id);
      const [first, firstGroup] = [firstOf('/etc/subuid'), firstOf('/etc/subgid')];
      assert.equal(statSync(`/proc/${pid}`).uid, first);
      const mapOf = (name: string): string =>
        readFileSync(`/proc/${pid}/${name}`, 'utf8').trim().replaceAll(/\s+/g, ' ');
      assert.equal(mapOf('uid_map'), `0 ${first} 65536`);
      assert.equal(mapOf('gid_map'), `0 ${firstGroup} 65536`);
      assert.match(await execOf(engine, id, 'id -u; id -g; cat /proc/self/uid_map'), /^0\r?\n0\r?\n\s+0\s+\d+\s+65536/);
      await engine.delete(`/containers/${id}?force=1`);
    });

    test('the root file system belongs to root inside', async () => {
      const text = await outputOf(
        engine,
        'stat -c %u:%g / /bin/busybox /etc/hosts; touch /new && chown 1000:1001 /new && stat -c %u:%g /new; echo x >> /etc/hosts && echo written',
      );
      assert.equal(text, '0:0\n0:0\n0:0\n1000:1001\nwritten\n');
    });

    test('volumes have owners of the container', async () => {
      const body = { HostConfig: { Binds: ['shared:/v'] } };
      assert.equal(await outputOf(engine, 'touch /v/a && chown 7:8 /v/a && stat -c %u:%g /v /v/a', body), '0:0\n7:8\n');
      const { uid, gid } = statSync(`${engine.dataRoot}/volumes/shared/_data/a`);
      assert.deepEqual([uid, gid], [7, 8]);
    });

    test('the mounts of a step of a build have owners of the container', async () => {
      const mounts = [
        ...['type=cache,target=/c', 'type=secret,id=s,target=/s', 'source=f,target=/f,rw'],
        ...['from=made,source=/d,target=/m', 'from=made,source=/d,target=/w,rw'],
      ].map((each) => `--mount=${each}`);
      const Dockerfile = [
        'FROM busybox AS made',
        'RUN mkdir /d && echo made >/d/x && chown 5:6 /d/x && chmod 600 /d/x',
        'FROM busybox',
        `RUN ${mounts.join(' ')} touch /c/x && cat /s /m/x && echo x | tee -a /w/x >>/f && stat -c %n=%u:%g /c/x /s /m/x /w/x /f`,
      ].join('\n');
      const context = new TarWriter().add({ name: 'Dockerfile', content: Dockerfile }).add({ name: 'f', content: 'f' });
      const secrets = Buffer.from(JSON.stringify({ s: Buffer.from('secret ').toString('base64') })).toString('base64');

      const { raw } = await engine.post('/build?networkmode=none&nocache=1', context.end(), {
        headers: { 'Content-Type': 'application/x-tar', 'X-Build-Secrets': secrets },
      });

      const lines = raw.toString().split('\n').filter(Boolean);
      const text = lines.map((line) => (JSON.parse(line) as { stream?: string }).stream ?? line).join('');
      for (const shown of ['secret made', '/c/x=0:0', '/s=0:0', '/m/x=5:6', '/w/x=5:6', '/f=0:0', 'Successfully built'])
        assert.ok(text.includes(shown), text);
    });

    test('the namespaces of IPC and processes are shared with their users, in a network of its own', async () => {
      const first = await engine.run(['sleep', '600'], { HostConfig: { IpcMode: 'shareable' } });
      const namespaceOf = (pid: number | string, kind: string): string => readlinkSync(`/proc/${pid}/ns/${kind}`);
      const pid = await pidOf(first);
      for (const NetworkMode of ['default', 'none']) {
        const HostConfig = { NetworkMode, IpcMode: `container:${first}`, PidMode: `container:${first}` };
        const second = await engine.run(['sh', '-c', 'ping -c 1 -W 60 127.0.0.1 && touch /dev/shm/a && sleep 600'], {
          HostConfig,
        });
        const other = await pidOf(second);
        for (const kind of ['user', 'ipc', 'pid']) assert.equal(namespaceOf(other, kind), namespaceOf(pid, kind));
        assert.notEqual(namespaceOf(other, 'net'), namespaceOf(pid, 'net'));
        assert.match(await execOf(engine, second, 'ip -4 route'), NetworkMode === 'none' ? /^$/ : /^default via /);
        await engine.delete(`/containers/${second}?force=1`);
      }
      await engine.delete(`/containers/${first}?force=1`);
    });

    test('namespaces of a container with the users of the host are not shared', async () => {
      const first = await engine.run(['sleep', '600'], { HostConfig: { UsernsMode: 'host' } });
      const second = await engine.create(['true'], { HostConfig: { PidMode: `container:${first}` } });

      const { status, body } = await engine.post<{ message: string }>(`/containers/${second}/start`);

      assert.equal(status, 500);
      assert.match(body.message, /it has another user namespace/);
      for (const id of [first, second]) await engine.delete(`/containers/${id}?force=1`);
    });

    test('a device of the host is there, with the rights of its owner on the host', async () => {
      const device = (PathOnHost: string, PathInContainer: string): object => ({
        PathOnHost,
        PathInContainer,
        CgroupPermissions: 'rwm',
      });
      const own = join(engine.directory, 'node');
      execFileSync('mknod', ['-m', '600', own, 'c', '1', '5']);
      const Devices = [device('/dev/full', '/dev/brim'), device(own, '/dev/own')];
      const text = await outputOf(
        engine,
        'stat -c %u /dev/brim; echo x > /dev/brim; head -c 1 /dev/own; chmod 777 /dev/brim',
        {
          HostConfig: { Devices },
        },
      );
      assert.match(text, /^65534\n/m);
      assert.match(text, /No space left on device/);
      assert.match(text, /\/dev\/own'?: Permission denied/);
      assert.match(text, /brim: Operation not permitted/);
    });

    test('a container finds its limits in its cgroup', async () => {
      const text = await outputOf(
        engine,
        'cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null; mkdir /sys/fs/cgroup/memory/a /sys/fs/cgroup/a 2>&1 | grep -c Read-only',
        { HostConfig: { Memory: 2 ** 26 } },
      );
      assert.match(text, /^67108864\n[12]\n$/);
    });

    test('attributes that name users, and a list of files, have the ids of the container', async () => {
      const capability = Buffer.from(`0100000200100000${'00'.repeat(12)}`, 'hex');
      const acl = Buffer.from(
        '0200000001000600ffffffff020004000500000004000400ffffffff10000600ffffffff20000400ffffffff',
        'hex',
      );
      const tar = new TarWriter();
      const pax = { 'SCHILY.xattr.security.capability': capability, 'SCHILY.xattr.system.posix_acl_access': acl };
      tar.add({ name: 'capable', content: 'x', uid: 12, gid: 13, mode: 0o664, pax });
      const archive = tar.end();
      for (const runs of [true, false]) {
        const id = await engine.create(['sleep', '600']);
        if (runs) await engine.post(`/containers/${id}/start`);

        const put = await engine.request('PUT', `/containers/${id}/archive?path=/home`, { body: archive });

        assert.equal(put.status, 200, put.raw.toString());
        const got = tarList((await engine.get(`/containers/${id}/archive?path=/home/capable`)).raw).get('capable');
        const attributes = new Map(got?.xattrs);
        assert.deepEqual(attributes.get('security.capability'), capability);
        assert.deepEqual(attributes.get('system.posix_acl_access') ?? acl, acl); // TMPDIR may know no lists
        const { body } = await engine.get<{ Entries: { UID: number; GID: number }[] }>(
          `/containers/${id}/files?path=/home`,
        );
        assert.deepEqual([body.Entries[0]?.UID, body.Entries[0]?.GID], [12, 13]);
        await engine.delete(`/containers/${id}?force=1`);
      }
    });

    test('the network works as in other containers', async () => {
      const text = await outputOf(
        engine,
        'ip -4 -o addr show eth0 | wc -l; ping -c 1 -W 5 127.0.0.1 >/dev/null && echo ping; ls /sys/class/net',
      );
      assert.equal(text, '1\nping\neth0\nlo\n');
    });
  });
}
