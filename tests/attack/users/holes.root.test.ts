import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdtempSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxLayer, imageArchive } from '@gantry/testing/busybox-image.ts';
import { outputOf } from '@gantry/testing/shell-lines.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

for (const runtime of ['crun', 'runc']) {
  suite(`ways of a root with a map to the host, ${runtime}`, () => {
    let engine: TestEngine;
    let folder: string;
    before(async () => {
      engine = await TestEngine.start({ flags: ['--userns-remap=default', `--default-runtime=${runtime}`] });
      folder = mkdtempSync(join(engine.directory, 'host-'));
      chmodSync(folder, 0o755);
      writeFileSync(join(folder, 'secret'), 'of the host\n', { mode: 0o600 });
    });
    after(async () => await engine[Symbol.asyncDispose]());

    const ATTEMPTS =
      'cat /h/secret; chown 0 /h/secret; chmod 777 /h/secret; touch /h/new; rm /h/secret; chmod 777 /h; true';

    function assertUntouched(said: string): void {
      assert.doesNotMatch(said, /of the host/);
      assert.equal(existsSync(join(folder, 'new')), false);
      assert.equal(statSync(join(folder, 'secret')).mode & 0o777, 0o600);
      assert.equal(statSync(folder).mode & 0o777, 0o755);
    }

    test('the files of a bind belong to nobody', async () => {
      assertUntouched(await outputOf(engine, ATTEMPTS, { HostConfig: { Binds: [`${folder}:/h`] } }));
    });

    test('so do those of a volume that is a bind', async () => {
      const DriverOpts = { type: 'none', o: 'bind', device: folder };
      const { status } = await engine.post('/volumes/create', { Name: 'bound', Driver: 'local', DriverOpts });
      assert.equal(status, 201);
      assertUntouched(await outputOf(engine, ATTEMPTS, { HostConfig: { Binds: ['bound:/h'] } }));
    });

    test('the whole host as a bind shows nothing of the engine', async () => {
      await outputOf(engine, 'echo kept > /v/kept', { HostConfig: { Binds: ['other:/v'] } });
      const other = await engine.create(['true']);
      const root = `/h${engine.dataRoot}`;
      const said = await outputOf(
        engine,
        `cat /h/etc/shadow; ls ${root} ${root}/layers ${root}/volumes; cat ${root}/volumes/other/_data/kept ${root}/gantry.db; ls ${root}/writable; ls ${root}/writable/${other}/upper; echo end`,
        { HostConfig: { Binds: ['/:/h'] } },
      );
      assert.doesNotMatch(said, /root:|kept\n|^total/m);
      const shown = said.split('\n').filter((line) => line !== '' && !/^(?:cat|ls): |^\/\S+:$/.test(line));
      assert.deepEqual(shown, ['end']); // `ls` names each folder, also one that it cannot open
    });

    test('a program that is setuid on the disk gives nothing to root of a container', async () => {
      const said = await outputOf(
        engine,
        'cp /bin/busybox /v/id && chmod 4755 /v/id && stat -c %u:%a /v/id; cp /bin/busybox /id && chmod 4755 /id; su -s /bin/sh nobody -c "/v/id id -u; /id id -u" 2>/dev/null || setuidgid nobody /v/id id -u; cat /proc/self/uid_map',
        { HostConfig: { Binds: ['programs:/v'] } },
      );
      assert.match(said, /^0:4755\n/);
      assert.doesNotMatch(said, /\s0\s+4294967295/);
    });

    test('the null device of the host keeps its owner', async () => {
      const before = statSync('/dev/null');
      assert.equal(await outputOf(engine, 'echo said', { User: '1000:1000' }), 'said\n');
      const id = await engine.run(['sleep', '600'], { User: '1000:1000' });
      const created = await engine.post<{ Id: string }>(`/containers/${id}/exec`, { Cmd: ['true'], User: '7:7' });
      await engine.post(`/exec/${created.body.Id}/start`, { Detach: true, Tty: false });
      await engine.delete(`/containers/${id}?force=1`);
      const { uid, gid, mode } = statSync('/dev/null');
      assert.deepEqual({ uid, gid, mode }, { uid: before.uid, gid: before.gid, mode: before.mode });
    });

    test('a device of the host cannot be made', async () => {
      assert.match(await outputOf(engine, 'mknod /disk b 254 0; mknod /tmp/null c 1 3; true'), /mknod.*not permitted/i);
    });

    test('an archive is written and read with the owners of the container', async () => {
      for (const runs of [true, false]) {
        const id = await engine.create(['sleep', '600']);
        if (runs) await engine.post(`/containers/${id}/start`);
        const tar = new TarWriter();
        tar.add({ name: 'put', content: 'x', uid: 12, gid: 13 });
        tar.add({ name: 'folder/', type: 'directory', uid: 5, gid: 6 });
        const put = await engine.request('PUT', `/containers/${id}/archive?path=/`, { body: tar.end() });
        assert.equal(put.status, 200, put.raw.toString());
        const { uid, gid } = statSync(`${engine.dataRoot}/writable/${id}/upper/put`);
        assert.deepEqual([uid, gid], [12, 13]);
        const got = await engine.get(`/containers/${id}/archive?path=/put`);
        assert.equal(parseInt(got.raw.subarray(108, 116).toString(), 8), 12);
        assert.equal(parseInt(got.raw.subarray(116, 124).toString(), 8), 13);
        await engine.delete(`/containers/${id}?force=1`);
      }
    });

    test('an image with an owner beyond the map is refused with the file and the id', async () => {
      const tar = new TarWriter();
      tar.add({ name: 'of/a/stranger', content: 'x', uid: 70_000 });
      const { raw } = await engine.post('/images/load?quiet=1', imageArchive([tar.end()], ['stranger:1'], {}));
      assert.match(raw.toString(), /of\/a\/stranger.*user id 70000/);
      assert.equal((await engine.get('/images/stranger:1/json')).status, 404);
    });

    test('a container keeps its files with and without a map, and images their owners', async () => {
      const id = await engine.create([
        'sh',
        '-c',
        'stat -c %u:%g /kept; touch /kept; chown 3:4 /kept; rmdir /home; ls -d /home',
      ]);
      await engine.post(`/containers/${id}/start`);
      await engine.wait(id);
      await engine.kill('SIGTERM');
      await engine.startAgain([`--default-runtime=${runtime}`]);
      await engine.post(`/containers/${id}/start`);
      await engine.wait(id);
      assert.match((await engine.output(id)).stdout, /3:4/);
      const tar = new TarWriter();
      tar.add({ name: 'of-a-stranger', content: 'x', uid: 70_000 });
      await engine.post('/images/load?quiet=1', imageArchive([busyboxLayer(), tar.end()], ['before:1'], {}));
      await engine.kill('SIGTERM');
      await engine.startAgain();
      await engine.delete(`/containers/${id}?force=1`);

      const said = await outputOf(engine, 'stat -c %u /of-a-stranger; chown 0 /of-a-stranger', { Image: 'before:1' });
      assert.match(said, /65534\n/);
      assert.match(said, /not permitted|too large|invalid/i);
    });

    test('settings that need the users of the host are refused in the words of dockerd', async () => {
      const refused = async (HostConfig: object): Promise<string> => {
        const { status, body } = await engine.post<{ message: string }>('/containers/create', {
          Image: 'busybox',
          HostConfig,
        });
        assert.equal(status, 400);
        return body.message;
      };
      assert.match(
        await refused({ Privileged: true }),
        /^privileged mode is incompatible with user namespaces\. {2}You must run/,
      );
      assert.equal(
        await refused({ NetworkMode: 'host' }),
        "cannot share the host's network namespace when user namespaces are enabled",
      );
      assert.equal(
        await refused({ PidMode: 'host' }),
        'cannot share the host PID namespace when user namespaces are enabled',
      );
    });

    test('a container may have the users of the host', async () => {
      const host = { HostConfig: { UsernsMode: 'host', Privileged: true } };
      assert.match(await outputOf(engine, 'cat /proc/self/uid_map', host), /^\s+0\s+0\s+4294967295\n$/);
      const capped = { HostConfig: { UsernsMode: 'host', CapDrop: ['NET_ADMIN'] } };
      assert.match(await outputOf(engine, 'ip link set lo down', capped), /not permitted/);
    });

    test('containers share a network with its users', async () => {
      const first = await engine.run(['sleep', '600']);
      assert.equal(
        await outputOf(engine, 'id -u; ls /sys/class/net', { HostConfig: { NetworkMode: `container:${first}` } }),
        '0\neth0\nlo\n',
      );
      await engine.delete(`/containers/${first}?force=1`);
    });

    test('the information tells it', async () => {
      const { body } = await engine.get<{ SecurityOptions: string[] }>('/info');
      assert.ok(body.SecurityOptions.some((option) => option.includes('userns')));
    });
  });
}
