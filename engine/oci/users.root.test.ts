import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { ExecInspect } from '@gantry/engine/exec/schema.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive, busyboxLayer } from '@gantry/testing/busybox-image.ts';
import { Session } from '@gantry/testing/streams/session.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const RANGE = 'uids and gids must be in range 0-2147483647';
const SHOW = ['sh', '-c', 'echo $(id -u) $(id -g) $(grep Groups: /proc/self/status | cut -f 2) $HOME'];

/** As dockerd 20.10 runs them with the same image. */
const users: [user: string, shown: string][] = [
  ['', '0 0 0 10 /root'],
  ['1234', '1234 0 0 /'],
  ['1234:5', '1234 5 5 /'],
  ['nobody', '65534 65534 65534 /home'],
  ['daemon:wheel', '1 10 10 /usr/sbin'],
];

suite('the user of a process', { concurrency: false }, () => {
  let engine: TestEngine;
  let container: string;
  before(async () => {
    engine = await TestEngine.start();
    const Ulimits = [{ Name: 'nofile', Soft: 100, Hard: 200 }];
    container = await engine.run(['sleep', '1000'], { HostConfig: { Ulimits, OomScoreAdj: 300 } }, 'owner');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function createExec(body: object, ref = container): Promise<string> {
    const Cmd = SHOW;
    const answer = await engine.post<{ Id: string }>(`/containers/${ref}/exec`, { AttachStdout: true, Cmd, ...body });
    assert.equal(answer.status, 201, answer.raw.toString());
    return answer.body.Id;
  }

  async function exec(body: object, ref = container): Promise<string> {
    const { socket } = await engine.hijack(`/exec/${await createExec(body, ref)}/start`, { body: {} });
    const session = new Session(socket);
    await session.ended;
    return session.output.stdout.trim();
  }

  async function refusal(path: string, body: object): Promise<[number, string]> {
    const answer = await engine.post<{ message: string }>(path, body);
    return [answer.status, answer.body.message];
  }

  for (const [User, shown] of users) {
    test(`"${User}" has its ids, its primary group among all others, and a home: run and exec`, async () => {
      const id = await engine.run(SHOW, { User });
      await engine.wait(id);

      assert.equal((await engine.output(id)).stdout.trim(), shown);
      assert.equal(await exec({ User }), shown);
    });
  }

  test("a home of the container's own environment stays", async () => {
    const id = await engine.run(SHOW, { User: '1234', Env: ['HOME=/data'] });
    await engine.wait(id);

    assert.equal((await engine.output(id)).stdout.trim(), '1234 0 0 /data');
  });

  test('an empty HOME, also of the image, becomes the home of the user: run and exec', async () => {
    const archive = imageArchive(busyboxLayer(), ['homeless:latest'], { Env: ['HOME='], Cmd: SHOW });
    await engine.post('/images/load?quiet=1', archive);
    for (const body of [{ Env: ['HOME='] }, { Image: 'homeless' }]) {
      const shows = await engine.run(SHOW, { User: 'nobody', ...body });
      await engine.wait(shows);
      const id = await engine.run(['sleep', '1000'], { User: 'nobody', ...body });

      assert.equal((await engine.output(shows)).stdout.trim(), '65534 65534 65534 /home');
      assert.equal(await exec({}, id), '65534 65534 65534 /home');
      assert.equal(await exec({ User: 'root' }, id), '0 0 0 10 /root');
      assert.equal(await exec({ Env: ['HOME=/data'] }, id), '65534 65534 65534 /data');
      assert.equal(await exec({ Cmd: ['sh', '-c', 'env | grep -c HOME='] }, id), '1');
    }
  });

  test("an exec has the container's limits and OOM score", async () => {
    const Cmd = ['sh', '-c', 'ulimit -n; ulimit -Hn; cat /proc/self/oom_score_adj'];

    assert.deepEqual((await exec({ Cmd })).split('\n'), ['100', '200', '300']);
  });

  test('an exec inherits the user, and its inspect shows it', async () => {
    const id = await engine.run(['sleep', '1000'], { User: 'nobody' });

    const created = await createExec({}, id);

    const { body } = await engine.get<ExecInspect>(`/exec/${created}/json`);
    assert.equal(body.ProcessConfig.user, 'nobody');
    assert.equal(await exec({}, id), '65534 65534 65534 /home');
  });

  for (const User of ['2147483648', '4294967295', '4294967296', '1:4294967295']) {
    test(`"${User}" is 400 at create, also from an image, and for an exec`, async () => {
      const archive = imageArchive(busyboxLayer(), ['odd:latest'], { User, Cmd: ['id'] });
      assert.equal((await engine.post('/images/load?quiet=1', archive)).status, 200);

      const own = await refusal('/containers/create', { Image: 'busybox', Cmd: ['id'], User });
      const inherited = await refusal('/containers/create', { Image: 'odd' });
      const execs = await refusal(`/containers/${container}/exec`, { Cmd: ['id'], User });

      for (const refused of [own, inherited, execs]) assert.deepEqual(refused, [400, RANGE]);
    });
  }

  test('a further group above the range is 400', async () => {
    const body = { Image: 'busybox', Cmd: ['id'], HostConfig: { GroupAdd: ['4294967295'] } };

    assert.deepEqual(await refusal('/containers/create', body), [400, RANGE]);
  });

  test('users are found behind links that an image has for /etc/passwd and /etc/group', async () => {
    const layer = new TarWriter()
      .add({ name: 'nix/store/passwd', content: 'app:x:5:6::/app:/bin/sh\n' })
      .add({ name: 'nix/store/group', content: 'app:x:6:\ndata:x:7:app\n' })
      .add({ name: 'etc/passwd', type: 'symlink', linkName: '/nix/store/passwd' })
      .add({ name: 'etc/group', type: 'symlink', linkName: '../nix/store/group' });
    await engine.post('/images/load?quiet=1', imageArchive([busyboxLayer(), layer.end()], ['nix:latest']));

    const id = await engine.run(SHOW, { Image: 'nix', User: 'app' });
    await engine.wait(id);

    assert.equal((await engine.output(id)).stdout.trim(), '5 6 6 7 /app');
  });

  test('a container that makes its /etc/passwd endless costs the daemon nothing', async () => {
    const id = await engine.run(['sh', '-c', 'dd if=/dev/zero of=/etc/passwd bs=1M seek=1000000 count=0; sleep 1000']);
    const filled = await exec({ User: '0:0', Env: ['HOME=/'], Cmd: ['stat', '-c', '%s', '/etc/passwd'] }, id);
    const before = await residentBytes();

    const [status, message] = await refusal(`/exec/${await createExec({ User: 'nobody' }, id)}/start`, {
      Detach: true,
    });

    assert.equal(filled, '1048576000000');
    assert.deepEqual([status, message], [500, "the container's /etc/passwd is larger than 1 MiB"]);
    assert.ok((await residentBytes()) - before < 50 * 2 ** 20);
  });

  async function residentBytes(): Promise<number> {
    const [, pages = ''] = (await engine.onHost(['cat', `/proc/${engine.pid}/statm`])).split(' ');
    return Number(pages) * 4096;
  }
});
