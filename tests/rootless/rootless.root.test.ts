import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { eventually } from '@gantry/testing/eventually.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';
import { LocalUser, removeStaleUsers } from '@gantry/testing/users/local-user.ts';
import { usersMayHaveNamespaces } from '@gantry/testing/users/rootless.ts';

const execute = promisify(execFile);
const PORT = 8471;
const SERVE = `mkdir /www; echo page > /www/index.html; exec httpd -f -p 80 -h /www`;

suite('the engine of an ordinary user', { concurrency: false }, usersMayHaveNamespaces() ? allowed : forbidden);

function forbidden(): void {
  test('without namespaces of users it does not start, and says why', async () => {
    await assert.rejects(TestEngine.start({ rootless: true }), /namespace|overlay/);
  });
}

function allowed(): void {
  let engine: TestEngine;
  let user: LocalUser;
  let stranger: LocalUser;
  before(async () => {
    stranger = await LocalUser.make();
    engine = await TestEngine.start({ rootless: true, version: '1.41' });
    user = engine.user!;
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    await stranger[Symbol.asyncDispose]();
  });

  const keeper = (): number => Number(readFileSync(join(engine.directory, 'run/gantry/keeper'), 'utf8'));
  const mapOf = (pid: number, kind: 'uid' | 'gid'): number[][] =>
    readFileSync(`/proc/${pid}/${kind}_map`, 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.trim().split(/\s+/).map(Number));
  const pidOf = async (ref: string): Promise<number> => {
    const { body } = await engine.get<{ State: { Pid: number } }>(`/containers/${ref}/json`);
    return body.State.Pid;
  };
  const web = async (name: string): Promise<string> =>
    await engine.run(
      ['sh', '-c', SERVE],
      { HostConfig: { PortBindings: { '80/tcp': [{ HostPort: String(PORT) }] } } },
      name,
    );
  const page = async (): Promise<string> =>
    await eventually('the port answers', async () => (await engine.fetchText(PORT)).trim());

  test('root of a container is the user, and the others are its subordinate ids, exactly', async () => {
    await engine.run(['sleep', '1000'], {}, 'mapped');
    const pid = await pidOf('mapped');
    const [uids, gids] = [await user.subordinateIds('/etc/subuid'), await user.subordinateIds('/etc/subgid')];

    assert.deepEqual(mapOf(pid, 'uid'), [
      [0, user.uid, 1],
      [1, uids.first, uids.count],
    ]);
    assert.deepEqual(mapOf(pid, 'gid'), [
      [0, user.gid, 1],
      [1, gids.first, gids.count],
    ]);
    await engine.delete('/containers/mapped?force=1');
  });

  test('no process of it is one of root, nor any of a container', async () => {
    await web('web');
    await page();
    const { count, first } = await user.subordinateIds('/etc/subuid');
    const space = readlinkSync(`/proc/${keeper()}/ns/user`);
    const ofEngine = readdirSync('/proc').filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readlinkSync(`/proc/${pid}/ns/user`) === space;
      } catch {
        return false; // it has ended
      }
    });
    const ids = ofEngine.flatMap((pid) => {
      try {
        const line = /^Uid:\t(.*)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? '';
        return line.split('\t').map(Number);
      } catch {
        return [];
      }
    });

    assert.ok(ofEngine.length >= 4, `keeper, daemon, shim and container: ${ofEngine.join(' ')}`);
    assert.ok(
      ids.every((id) => id === user.uid || (id >= first && id < first + count)),
      ids.join(' '),
    );
    await engine.delete('/containers/web?force=1');
  });

  test('another local user gets in by none of seven ways', async () => {
    await engine.run(['sleep', '1000'], {}, 'closed');
    const pid = await pidOf('closed');
    const [gate, data] = [join(engine.directory, 'run/gantry'), engine.dataRoot];
    const ways: readonly (readonly string[])[] = [
      ['curl', '-sf', '--unix-socket', engine.socketPath, 'http://x/info'],
      ['ls', data],
      ['ls', gate],
      ['curl', '-sf', '--unix-socket', join(gate, 'ports'), 'http://x/'],
      ['nsenter', '-t', String(keeper()), '--user', '--net', 'true'],
      ['ls', `/proc/${pid}/root/`],
      ['kill', '-0', String(engine.pid)],
    ];
    for (const way of ways) {
      const own = await user.run(way);
      const { code, stdout } = await stranger.run(way);
      assert.notEqual(code, 0, `${way.join(' ')}: ${stdout}`);
      // The way exists: its owner is not refused by the permissions.
      if (way[0] === 'ls' || way[0] === 'kill' || way[0] === 'nsenter')
        assert.equal(own.code, 0, `${way.join(' ')}: ${own.stderr}`);
    }
    await engine.delete('/containers/closed?force=1');
  });

  test('a killed daemon keeps container, port and namespaces, and the next one takes them up', async () => {
    const id = await web('kept');
    const [before, pid] = [keeper(), await pidOf('kept')];
    await page();
    await engine.kill();

    assert.equal(await page(), 'page');
    await engine.startAgain();

    assert.equal(keeper(), before);
    assert.equal(await pidOf('kept'), pid);
    assert.equal(await page(), 'page');
    const { body } = await engine.post<{ Id: string }>(`/containers/${id}/exec`, { Cmd: ['true'] });
    assert.equal((await engine.post(`/exec/${body.Id}/start`, { Detach: true })).status, 200);
    assert.equal((await engine.delete(`/containers/${id}?force=1`)).status, 204);
  });

  test('the port is free again after its container', async () => {
    for (const name of ['first', 'second']) {
      await web(name);
      assert.equal(await page(), 'page');
      await engine.delete(`/containers/${name}?force=1`);
    }
  });

  test('users of tests that have died are removed', async () => {
    const left = 'gantry-999999999-1'; // no process has such a number
    await eventually('a user is made', async () => {
      await execute('useradd', ['--no-create-home', left]);
      return true;
    });
    const isThere = (name: string): boolean => readFileSync('/etc/passwd', 'utf8').includes(`${name}:`);

    await eventually('the user is removed', async () => {
      await removeStaleUsers(); // another test may hold the lock of the file
      return !isThere(left);
    });

    assert.ok(isThere(stranger.name));
  });

  test('a port below 1024 is refused, and the error says how root opens it', async () => {
    const PortBindings = { '80/tcp': [{ HostPort: '80' }] };
    const id = await engine.create(['true'], { HostConfig: { PortBindings } });

    const { status, raw } = await engine.post(`/containers/${id}/start`);

    assert.equal(status, 500);
    assert.match(raw.toString(), /permission denied; as root, sysctl net\.ipv4\.ip_unprivileged_port_start=0/);
    await engine.delete(`/containers/${id}?force=1`);
  });

  test('containers of a network find one another by name', async () => {
    await engine.post('/networks/create', { Name: 'own' });
    await engine.run(['sh', '-c', SERVE], { HostConfig: { NetworkMode: 'own' } }, 'server');
    const script = 'for i in $(seq 100); do wget -q -O- http://server/ && exit 0; sleep 0.3; done; exit 1';
    const id = await engine.run(['sh', '-c', script], { HostConfig: { NetworkMode: 'own' } });

    assert.equal(await engine.wait(id), 0);
    assert.equal((await engine.output(id)).stdout, 'page\n');
    for (const ref of ['server', id]) await engine.delete(`/containers/${ref}?force=1`);
    assert.equal((await engine.delete('/networks/own')).status, 204);
  });

  test('volumes keep files with owners of the container', async () => {
    const HostConfig = { Binds: ['kept:/data'] };
    const write = await engine.run(['sh', '-c', 'echo kept > /data/file; chown 33:33 /data/file'], { HostConfig });
    assert.equal(await engine.wait(write), 0);
    const read = await engine.run(['sh', '-c', 'cat /data/file; stat -c %u:%g /data/file'], { HostConfig });

    assert.equal(await engine.wait(read), 0);
    assert.equal((await engine.output(read)).stdout, 'kept\n33:33\n');
    for (const ref of [write, read]) await engine.delete(`/containers/${ref}?force=1`);
  });

  test('an image is built, and a file that a step removes is gone', async () => {
    const { stdout, stderr, code } = await buildByDocker(
      'FROM busybox\nRUN mkdir /d && echo one > /d/one && echo two > /d/two\nRUN rm /d/one && rm -r /bin/vi; mkdir /bin/vi\nCMD ["ls","/d"]\n',
    );
    assert.equal(code, 0, stdout + stderr);

    const id = await engine.run([], { Image: 'built', Cmd: undefined });

    assert.equal(await engine.wait(id), 0);
    assert.equal((await engine.output(id)).stdout, 'two\n');
    await engine.delete(`/containers/${id}?force=1`);
  });

  test('devices of the machine, its processes and its IPC are shown as the user may see them', async () => {
    const Devices = [{ PathOnHost: '/dev/null', PathInContainer: '/dev/nothing', CgroupPermissions: 'rwm' }];
    const id = await engine.run(['sh', '-c', 'echo x > /dev/nothing && test -c /dev/nothing && test -d /proc/1'], {
      HostConfig: { Devices, PidMode: 'host', IpcMode: 'host' },
    });

    assert.equal(await engine.wait(id), 0);
    await engine.delete(`/containers/${id}?force=1`);
  });

  test('/info says that it is rootless and has no limits; a pause is refused', async () => {
    const { body } = await engine.get<{ SecurityOptions: string[]; Warnings: string[]; CgroupDriver: string }>('/info');
    await engine.run(['sleep', '1000'], {}, 'busy');

    assert.ok(body.SecurityOptions.includes('name=rootless'));
    assert.equal(body.CgroupDriver, 'none');
    assert.match(body.Warnings.join('\n'), /rootless-mode without cgroups[^]*No memory limit support/);
    assert.equal((await engine.post('/containers/busy/pause')).status, 500);
    const { body: top } = await engine.get<{ Processes: string[][] }>('/containers/busy/top');
    assert.equal(top.Processes.length, 1);
    await engine.delete('/containers/busy?force=1');
  });

  async function buildByDocker(buildfile: string): Promise<{ stdout: string; stderr: string; code: number }> {
    const script = `printf '%s' "$1" | docker -H unix://${engine.socketPath} build -q -t built -`;
    return await user.run(['env', 'DOCKER_BUILDKIT=0', 'sh', '-c', script, 'sh', buildfile]);
  }
}
