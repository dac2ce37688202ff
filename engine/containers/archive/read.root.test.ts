import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { tarList, type Listed } from '@gantry/testing/archives/tar-list.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Stat = { name: string; size: number; mode: number; mtime: string; linkTarget: string };

const FILES = `mkdir -p /w/d/e /w/st; cd /w; chmod 1777 st; echo hello >h; chmod 6755 h; ln h again; touch -d @1700000000 h
ln -s h l; ln -s /w/d dl; ln -s ../../../../../etc/passwd climb; ln -s nowhere dangling; ln -s loop loop; mkfifo fifo
mknod null c 1 3; chown -h 5:6 l; echo in >/v/in; ln -s /etc /v/out; echo x >/dev/shm/x; touch /ready`;

suite('a path of a container', { concurrency: false }, () => {
  let engine: TestEngine;
  let running: string;
  before(async () => {
    engine = await TestEngine.start();
    const binds = { HostConfig: { Binds: ['files:/v', 'other:/mnt/inner:ro'] } };
    running = await engine.run(['sh', '-c', `${FILES}; sleep 1000`], binds);
    while ((await archive(running, '/ready')).status !== 200) await setTimeout(20);
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function archive(id: string, path: string): Promise<{ status: number; raw: Buffer; headers: object }> {
    return await engine.get(`/containers/${id}/archive?path=${encodeURIComponent(path)}`);
  }

  async function stat(id: string, path: string): Promise<Stat> {
    const query = `path=${encodeURIComponent(path)}`;
    const { status, headers } = await engine.request('HEAD', `/containers/${id}/archive?${query}`);
    assert.equal(status, 200, path);
    const value = String(headers['x-docker-container-path-stat']);
    assert.equal(headers['x-engine-container-path-stat'], value);
    return JSON.parse(Buffer.from(value, 'base64').toString()) as Stat;
  }

  async function entries(id: string, path: string): Promise<Map<string, Listed>> {
    const { status, raw } = await archive(id, path);
    assert.equal(status, 200, raw.toString('latin1', 0, 200));
    return tarList(raw);
  }

  const folder = 2 ** 31;
  const stats: readonly [path: string, Partial<Stat>][] = [
    ['/w/h', { name: 'h', size: 6, mode: 2 ** 23 + 2 ** 22 + 0o755, mtime: '2023-11-14T22:13:20Z', linkTarget: '' }],
    ['w/h', { name: 'h' }],
    ['/w/../w/./h', { name: 'h' }],
    ['../../w/h', { name: 'h' }],
    ['/', { name: '/', mode: folder + 0o755 }],
    ['/w/d', { name: 'd', mode: folder + 0o755 }],
    ['/w/d/', { name: 'd', mode: folder + 0o755 }],
    ['/w/d/.', { name: '.', mode: folder + 0o755 }],
    ['/w/st', { name: 'st', mode: folder + 2 ** 20 + 0o777 }],
    ['/w/l', { name: 'l', size: 1, mode: 2 ** 27 + 0o777, linkTarget: '/w/h' }],
    ['/w/dl', { name: 'dl', mode: 2 ** 27 + 0o777, linkTarget: '/w/d' }],
    ['/w/dl/', { name: 'dl', mode: folder + 0o755, linkTarget: '' }],
    ['/w/dl/e', { name: 'e', mode: folder + 0o755 }],
    ['/w/climb', { name: 'climb', linkTarget: '/etc/passwd' }],
    ['/w/dangling', { name: 'dangling', linkTarget: '/w/nowhere' }],
    ['/w/fifo', { name: 'fifo', mode: 2 ** 25 + 0o644 }],
    ['/w/null', { name: 'null', mode: 2 ** 26 + 2 ** 21 + 0o644 }],
    ['/v/in', { name: 'in', size: 3 }],
    ['/v/out/passwd', { name: 'passwd' }],
    ['/etc/hosts', { name: 'hosts', mode: 0o644 }],
  ];
  test('is told in the header with the mode bits of Go', async () => {
    for (const [path, expected] of stats) {
      const found = await stat(running, path);
      assert.deepEqual({ ...found, ...expected }, found, path);
    }
  });

  const refusals: readonly [path: string, status: number, message: RegExp][] = [
    ['', 400, /^bad parameter: path cannot be empty$/],
    ['/nowhere', 404, /^Could not find the file \/nowhere in container /],
    ['/w/h/x', 404, /^Could not find the file/],
    ['/w/dangling/', 404, /^Could not find the file/],
    ['/w/h/', 400, /^\/w\/h\/ is not a directory$/],
    ['/w/h/.', 400, /is not a directory$/],
    ['/w/loop/', 400, /too many links/],
    ['/dev/shm/x', 404, /^Could not find the file/],
    ['/proc/self/root', 404, /^Could not find the file/],
    [`/${'n'.repeat(300)}`, 404, /^Could not find the file/],
  ];
  test('is refused where there is none, with the reason', async () => {
    for (const [path, status, message] of refusals) {
      const answer = await archive(running, path);
      assert.equal(answer.status, status, path);
      assert.match((JSON.parse(answer.raw.toString()) as { message: string }).message, message, path);
    }
  });

  test('comes as an archive with everything that its entries have', async () => {
    const found = await entries(running, '/w');

    const shown = [...found.values()].map(({ path, type, mode, linkPath }) => [path, type, mode, linkPath]);
    assert.deepEqual(shown, [
      ['w/', 'directory', 0o755, ''],
      ['w/again', 'file', 0o6755, ''],
      ['w/climb', 'symlink', 0o777, '../../../../../etc/passwd'],
      ['w/d/', 'directory', 0o755, ''],
      ['w/d/e/', 'directory', 0o755, ''],
      ['w/dangling', 'symlink', 0o777, 'nowhere'],
      ['w/dl', 'symlink', 0o777, '/w/d'],
      ['w/fifo', 'fifo', 0o644, ''],
      ['w/h', 'link', 0o6755, 'w/again'],
      ['w/l', 'symlink', 0o777, 'h'],
      ['w/loop', 'symlink', 0o777, 'loop'],
      ['w/null', 'charDevice', 0o644, ''],
      ['w/st/', 'directory', 0o1777, ''],
    ]);
    assert.equal(found.get('w/again')?.content.toString(), 'hello\n');
    assert.equal(found.get('w/again')?.mtime.seconds, 1_700_000_000);
    const { uid, gid } = found.get('w/l')!;
    assert.deepEqual([uid, gid], [5, 6]);
    const { major, minor } = found.get('w/null')!;
    assert.deepEqual([major, minor], [1, 3]);
  });

  test('names its entries after the last part of the path', async () => {
    const names = async (path: string): Promise<string[]> => [...(await entries(running, path)).keys()].slice(0, 2);

    assert.deepEqual(await names('/mnt'), ['mnt/', 'mnt/inner/']);
    assert.deepEqual(await names('/v'), ['v/', 'v/in']);
    assert.deepEqual(await names('/v/'), ['v/', 'v/in']);
    assert.deepEqual(await names('/v/.'), ['./', './in']);
    assert.deepEqual(await names('/w/dl/'), ['dl/', 'dl/e/']);
    assert.deepEqual(await names('/w/dl'), ['dl']);
    assert.deepEqual(await names('/'), ['/', '/.dockerenv']);
  });

  test('shows the files that the engine makes in a container that never ran, which are no changes of it', async () => {
    const body = { WorkingDir: '/made/../made/here/', Cmd: ['sh', '-c', 'echo >>/etc/hosts'] };
    const id = await engine.create([], body);
    const exported = async (): Promise<string[]> => {
      const { raw } = await engine.get(`/containers/${id}/export`);
      return [...tarList(raw).keys()].filter((path) => /^(dev|etc|made|proc|sys|\.dockerenv)/.test(path));
    };
    const created = await exported();
    await engine.post(`/containers/${id}/start`);
    await engine.wait(id);

    const files = ['etc/group', 'etc/hostname', 'etc/hosts', 'etc/mtab', 'etc/passwd', 'etc/resolv.conf', 'etc/shadow'];
    const folders = ['dev/', 'dev/console', 'dev/pts/', 'dev/shm/', 'etc/', 'made/', 'made/here/', 'proc/', 'sys/'];
    assert.deepEqual(created.toSorted(), ['.dockerenv', ...folders, ...files].toSorted());
    assert.deepEqual(await exported(), created);
    assert.deepEqual((await engine.get(`/containers/${id}/changes`)).body, [
      { Path: '/made', Kind: 1 },
      { Path: '/made/here', Kind: 1 },
    ]);
    const { body: inspected } = await engine.get<{ Config: { WorkingDir: string } }>(`/containers/${id}/json`);
    assert.equal(inspected.Config.WorkingDir, '/made/here');
  });

  test('can be had of containers that never ran, are paused, or have ended', async () => {
    const body = { HostConfig: { Binds: ['files:/v'] } };
    const created = await engine.create(['true'], body);
    const ended = await engine.run(['sh', '-c', 'echo mine >/mine'], body);
    await engine.wait(ended);
    await engine.post(`/containers/${running}/pause`);

    assert.equal((await entries(created, '/v/in')).get('in')?.content.toString(), 'in\n');
    assert.equal((await entries(ended, '/v/in')).get('in')?.content.toString(), 'in\n');
    assert.equal((await entries(ended, '/mine')).get('mine')?.content.toString(), 'mine\n');
    assert.equal((await entries(running, '/w/h')).get('h')?.content.toString(), 'hello\n');
    await engine.post(`/containers/${running}/unpause`);
  });

  test('can be had while its container starts again, and shows files of the new run', async () => {
    const id = await engine.run(['sh', '-c', 'head -c 30000000 /dev/zero >/zeros; date +%N >>/runs']);
    await engine.wait(id);
    const request = await opened(`/containers/${id}/archive?path=/zeros`);
    for (let run = 2; run <= 3; run += 1) {
      assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
      await engine.wait(id);
    }

    const runs = (await entries(id, '/runs')).get('runs')!.content.toString();
    request.destroy();

    assert.equal(runs.trim().split('\n').length, 3);
  });

  test('is cut off when its container is removed meanwhile', async () => {
    const id = await engine.run(['sh', '-c', 'head -c 30000000 /dev/zero >/zeros']);
    await engine.wait(id);
    const request = await opened(`/containers/${id}/archive?path=/zeros`);

    assert.equal((await engine.delete(`/containers/${id}`)).status, 204);

    await assert.rejects(request.rest());
    assert.equal((await archive(id, '/zeros')).status, 404);
  });

  test('of 9,900 bytes is packed', async () => {
    const part = Array.from({ length: 300 }, () => 'abcdefghij').join('/');
    const script = `for n in a b c; do mkdir -p /deep/$n/${part}; done; echo deep >/deep/c/${part}/file
mv /deep/c /deep/b/${part}/c; mv /deep/b /deep/a/${part}/b`;
    const id = await engine.run(['sh', '-c', script]);
    assert.equal(await engine.wait(id), 0);

    const found = await entries(id, '/deep');

    assert.equal(found.get(`deep/a/${part}/b/${part}/c/${part}/file`)?.content.toString(), 'deep\n');
    await engine.delete(`/containers/${id}`);
    while (readdirSync(join(engine.dataRoot, 'writable')).includes(id)) await setTimeout(20);
    while (readdirSync(join(engine.dataRoot, 'writable/.trash')).length > 0) await setTimeout(20);
  });

  test('tells of itself in an event', async () => {
    const id = await engine.create(['true'], { HostConfig: { Binds: ['files:/v'] } }, 'told');
    const since = Date.now() / 1000;
    await archive(id, '/v');
    // The creation can be of the same millisecond.
    const filters = encodeURIComponent(JSON.stringify({ container: [id], event: ['copy'] }));
    const answer = await engine.get(`/events?since=${since}&until=${Date.now() / 1000 + 1}&filters=${filters}`);

    const lines = answer.raw.toString().trim().split('\n');
    const events = lines.map((line) => JSON.parse(line) as { Action: string; Actor: object });
    assert.deepEqual(
      events.map(({ Action, Actor }) => [Action, Actor]),
      [['copy', { ID: id, Attributes: { image: 'busybox', name: 'told' } }]],
    );
  });

  /** A request of which nothing but the head was read. */
  async function opened(path: string): Promise<{ rest: () => Promise<void>; destroy: () => void }> {
    const { promise, resolve, reject } = Promise.withResolvers<{ rest: () => Promise<void>; destroy: () => void }>();
    const request = get({ socketPath: engine.socketPath, path }, (response) => {
      const rest = async (): Promise<void> => {
        for await (const _chunk of response);
      };
      resolve({ rest, destroy: () => request.destroy() });
    });
    request.on('error', reject);
    return await promise;
  }
});
