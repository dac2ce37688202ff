import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempDisposableSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TestPlugin, volumePlugin } from '@gantry/testing/plugin.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Message = { message: string };
type Volume = { Name: string; Driver: string; Scope: string; Mountpoint: string; Status?: { users: number } };

test("a plugin's volumes are made, mounted for each run, unmounted after it, and removed, also over a crash", async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-plugins-'));
  await using plugin = await volumePlugin(join(place.path, 'kept.sock'), join(place.path, 'files'));
  await using engine = await TestEngine.start({ flags: [`--plugin-folder=${place.path}`] });
  const users = async (): Promise<number> => (await engine.get<Volume>('/volumes/data')).body.Status?.users ?? -1;

  const made = await engine.post<Volume>('/volumes/create', { Name: 'data', Driver: 'kept', DriverOpts: { a: 'b' } });
  assert.equal(made.status, 201, made.raw.toString());
  assert.deepEqual([made.body.Driver, made.body.Scope], ['kept', 'global']);
  assert.equal(made.body.Mountpoint, join(place.path, 'files/data'));
  const id = await engine.run(['sh', '-c', 'echo hello >/v/file; sleep 600'], {
    HostConfig: { NetworkMode: 'none', Binds: ['data:/v'] },
  });
  assert.equal(await users(), 1);
  await engine.kill('SIGKILL');
  await engine.startAgain();
  assert.equal(await users(), 1);
  assert.equal((await engine.delete('/volumes/data')).status, 409);
  assert.equal((await engine.get(`/containers/${id}/archive?path=/v/file`)).status, 200);
  assert.equal(readFileSync(join(place.path, 'files/data/file'), 'utf8'), 'hello\n');
  await engine.delete(`/containers/${id}?force=1`);
  const signal = AbortSignal.timeout(60_000);
  while ((await users()) > 0) await setTimeout(20, undefined, { signal });

  assert.equal((await engine.delete('/volumes/data')).status, 204);
  assert.deepEqual(readdirSync(join(place.path, 'files')), []);
  const driven = await engine.create(['true'], { Volumes: { '/v': {} }, HostConfig: { VolumeDriver: 'kept' } });
  assert.equal(readdirSync(join(place.path, 'files')).length, 1);
  await engine.delete(`/containers/${driven}?v=1`);
  assert.deepEqual(readdirSync(join(place.path, 'files')), []);
  assert.ok(plugin.methods().includes('VolumeDriver.Capabilities'));
});

test("a plugin's refusal is reported in its words, and a plugin that has gone hides no other volume", async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-plugins-'));
  await using engine = await TestEngine.start({ flags: [`--plugin-folder=${place.path}`] });
  const create = async (body: object): Promise<unknown[]> => {
    const answer = await engine.post<Message>('/volumes/create', body);
    return [answer.status, answer.body.message];
  };
  {
    await using _plugin = await volumePlugin(join(place.path, 'kept.sock'), join(place.path, 'files'));
    assert.deepEqual(await create({ Name: 'no', Driver: 'kept', DriverOpts: { refuse: 'full' } }), [
      500,
      'create no: VolumeDriver.Create: refused: full',
    ]);
    assert.equal((await create({ Name: 'yes', Driver: 'kept' }))[0], 201);
    assert.equal((await create({ Name: 'own' }))[0], 201);
    assert.deepEqual((await create({ Name: 'own', Driver: 'kept' }))[0], 409);
  }
  await using _other = await TestPlugin.start(join(place.path, 'other.sock'), ['authz'], {});
  assert.match(String((await create({ Name: 'x', Driver: 'other' }))[1]), /does not implement VolumeDriver/);

  const { body } = await engine.get<{ Volumes: Volume[]; Warnings: string[] }>('/volumes');
  assert.deepEqual(
    body.Volumes.map(({ Name }) => Name),
    ['yes', 'own'],
  );
  assert.match(body.Warnings.join(), /^yes: .*plugin "kept" not found$/);
  assert.equal((await engine.delete('/volumes/yes')).status, 404);
});

test('an authorization plugin is asked about each request and its answer, and refuses in its words', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-plugins-'));
  await using plugin = await TestPlugin.start(join(place.path, 'judge.sock'), ['authz'], {
    'AuthZPlugin.AuthZReq': ({ RequestUri = '' }) => {
      if (RequestUri.includes('broken')) return { Err: 'out of order' };
      return { Allow: !RequestUri.includes('secret'), Msg: 'not for you' };
    },
    'AuthZPlugin.AuthZRes': ({ ResponseBody = '' }) => {
      return { Allow: !Buffer.from(ResponseBody, 'base64').toString().includes('hidden'), Msg: 'not to be seen' };
    },
  });
  const flags = [`--plugin-folder=${place.path}`, '--authorization-plugin=judge'];
  await using engine = await TestEngine.start({ flags });

  assert.deepEqual((await engine.get<{ Plugins: object }>('/info')).body.Plugins, {
    ...(await engine.get<{ Plugins: object }>('/info')).body.Plugins,
    Authorization: ['judge'],
  });
  const refused = await engine.post<Message>('/v1.24/volumes/create?secret=1', { Name: 'never' });
  assert.deepEqual([refused.status, refused.body.message], [403, 'authorization denied by plugin judge: not for you']);
  assert.equal((await engine.get('/volumes/never')).status, 404);
  const broken = await engine.get<Message>('/volumes?broken=1');
  assert.deepEqual(
    [broken.status, broken.body.message],
    [500, 'plugin judge failed with error: AuthZPlugin.AuthZReq: out of order'],
  );
  const unseen = await engine.post<Message>('/volumes/create', { Name: 'hidden' });
  assert.deepEqual([unseen.status, unseen.body.message], [403, 'authorization denied by plugin judge: not to be seen']);
  const asked = plugin.calls.findLast(({ method }) => method === 'AuthZPlugin.AuthZReq')!.body;
  assert.deepEqual([asked.RequestMethod, asked.RequestUri], ['POST', '/v1.24/volumes/create']);
  assert.deepEqual(JSON.parse(Buffer.from(String(asked.RequestBody), 'base64').toString()), { Name: 'hidden' });
  await engine.post('/auth', { username: 'u', password: 'p', serveraddress: '127.0.0.1:1' });
  assert.equal(plugin.calls.findLast(({ method }) => method === 'AuthZPlugin.AuthZReq')!.body.RequestBody, undefined);
  const id = await engine.run(['echo', 'streams pass'], { HostConfig: { NetworkMode: 'none' } });
  await engine.wait(id);
  assert.equal((await engine.output(id)).stdout, 'streams pass\n');
  await engine.get(`/containers/${id}/json`); // has a short way of its own
  const last = plugin.calls.findLast(({ method }) => method === 'AuthZPlugin.AuthZReq')!.body;
  assert.equal(last.RequestUri, `/v1.24/containers/${id}/json`);
});

test('a daemon without its authorization plugin does not start', () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-plugins-'));
  const inside = (name: string): string => join(place.path, name);
  const flags = [
    `--host=unix://${inside('sock')}`,
    `--data-root=${inside('data')}`,
    `--exec-root=${inside('exec')}`,
    `--pidfile=${inside('pid')}`,
    '--bridge=none',
    `--plugin-folder=${place.path}`,
    '--authorization-plugin=nobody',
  ];

  const { status, stderr } = spawnSync(process.execPath, [join(import.meta.dirname, '../main.ts'), ...flags], {
    encoding: 'utf8',
    timeout: 120_000,
  });

  assert.deepEqual([status, stderr], [1, 'gantry daemon: plugin "nobody" not found\n']);
});

test('a request that is too large for an authorization plugin is refused', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-plugins-'));
  await using plugin = await TestPlugin.start(join(place.path, 'judge.sock'), ['authz'], {
    'AuthZPlugin.AuthZReq': () => ({ Allow: true }),
    'AuthZPlugin.AuthZRes': () => ({ Allow: true }),
  });
  const flags = [`--plugin-folder=${place.path}`, '--authorization-plugin=judge'];
  await using engine = await TestEngine.start({ flags });
  const asked = plugin.calls.length;

  const body = { Image: 'busybox', HostConfig: { Privileged: true }, Labels: { hides: ' '.repeat(1024 * 1024) } };
  const { status, body: said } = await engine.post<Message>('/containers/create', body);

  assert.equal(status, 403);
  assert.match(said.message, /^a body of \d+ bytes is more than authorization plugins are shown$/);
  assert.equal(plugin.calls.length, asked);
});

test('one that goes away or falls silent does not hold up copies, creations, lists or removals', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-plugins-'));
  const socketPath = join(place.path, 'kept.sock');
  await using engine = await TestEngine.start({ flags: [`--plugin-folder=${place.path}`] });
  const body = { HostConfig: { NetworkMode: 'none', Binds: ['data:/v'] } };
  let id: string;
  {
    await using _plugin = await volumePlugin(socketPath, join(place.path, 'files'));
    await engine.post('/volumes/create', { Name: 'data', Driver: 'kept' });
    id = await engine.create(['true'], body);
  }

  // It mounts, and then says no more.
  const silent = Promise.withResolvers<number>();
  await using _silent = await TestPlugin.start(socketPath, ['VolumeDriver'], {
    'VolumeDriver.Mount': () => ({ Err: 'no disk' }),
    'VolumeDriver.Unmount': () => ({ Err: 'no disk' }),
    'VolumeDriver.Path': async () => await silent.promise,
    'VolumeDriver.Get': async () => await silent.promise,
  });
  const copied = await engine.get<Message>(`/containers/${id}/archive?path=/v`);
  assert.deepEqual([copied.status, copied.body.message], [500, 'VolumeDriver.Mount: no disk']);
  const { status } = await engine.post('/containers/create', {
    Image: 'busybox',
    ...body,
    HostConfig: { Binds: ['data:/bin'] },
  });
  assert.equal(status, 500);
  const { body: list } = await engine.get<{ Warnings: string[] }>('/volumes');
  assert.match(list.Warnings.join(), /^data: plugin "kept" does not answer: .*no answer within 2 seconds$/);
  assert.equal((await engine.get('/volumes/data')).status, 500);
  assert.equal((await engine.delete(`/containers/${id}`)).status, 204);
  silent.resolve(404);
});
