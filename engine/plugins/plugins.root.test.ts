import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempDisposableSync, readdirSync, readFileSync } from 'node:fs';
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

/** Answers of plugins in the field, and which method gives them. */
const usual: [method: string, reply: string | number][] = [
  ...['Create', 'Unmount', 'Remove', 'Capabilities', 'Path', 'Mount'].flatMap((method): [string, string][] =>
    ['null', '', '{"Err":null}', '{}'].map((reply) => [method, reply]),
  ),
  ['Capabilities', 404],
  ['Capabilities', '{"Capabilities":null}'],
  ['Path', 404],
  ['Get', 404],
  ['Mount', '{"mountpoint":"PLACE/data"}'],
  ['Get', '{"Volume":{"Name":"data","Mountpoint":null,"Status":null}}'],
];

test("the usual answers of volume plugins serve a volume's whole life", async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-plugins-'));
  await using engine = await TestEngine.start({ flags: [`--plugin-folder=${place.path}`] });

  for (const [index, [method, reply]] of usual.entries()) {
    const label = `${method}: ${reply}`;
    const files = join(place.path, String(index));
    const text = typeof reply === 'string' ? reply.replace('PLACE', files) : reply;
    const body = join(files, 'data');
    await using plugin = await volumePlugin(join(place.path, `p${index}.sock`), files, {
      [`VolumeDriver.${method}`]: () => {
        if (method === 'Create') mkdirSync(body, { recursive: true });
        return text;
      },
      ...(method === 'Create' && {
        'VolumeDriver.Get': () => ({ Volume: existsSync(body) ? { Name: 'data', Mountpoint: body } : null }),
      }),
    });
    if (method === 'Get') mkdirSync(body, { recursive: true });
    const driver = `p${index}`;
    const made = await engine.post('/volumes/create', { Name: 'data', Driver: driver });
    assert.equal(made.status, 201, `${label}: ${made.raw.toString()}`);
    assert.equal((await engine.get('/volumes/data')).status, 200, label);
    const HostConfig = { NetworkMode: 'none', Binds: ['data:/v'] };
    const id = await engine.run(['sh', '-c', 'echo hello >/v/file'], { HostConfig });
    assert.equal(await engine.wait(id), 0, label);
    assert.equal(readFileSync(join(body, 'file'), 'utf8'), 'hello\n', label);
    assert.equal((await engine.delete(`/containers/${id}`)).status, 204, label);
    assert.equal((await engine.delete('/volumes/data')).status, 204, label);
    assert.ok(plugin.methods().includes('VolumeDriver.Remove'), label);
  }
});

test('a volume that its plugin does not know any more is not found', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-plugins-'));
  await using engine = await TestEngine.start({ flags: [`--plugin-folder=${place.path}`], image: false });
  let isLost = false;
  let reply: string | Record<string, unknown> = '';
  await using _plugin = await volumePlugin(join(place.path, 'kept.sock'), join(place.path, 'files'), {
    'VolumeDriver.Get': ({ Name = '' }) => (isLost ? reply : { Volume: { Name, Mountpoint: '/kept' } }),
  });
  const missing = [404, 'get data: no such volume'];
  const said = async (asked: Promise<{ status: number; body: Message | undefined }>): Promise<unknown[]> => {
    const { status, body } = await asked;
    return [status, body?.message];
  };

  for (reply of ['null', '', '{}', '{"Volume":null}', '{"Volume":{"Name":"other"}}', { Err: 'no such thing' }]) {
    isLost = false;
    await engine.post('/volumes/create', { Name: 'data', Driver: 'kept' });
    await engine.post('/volumes/create', { Name: 'forced', Driver: 'kept' });
    isLost = true;

    const label = JSON.stringify(reply);
    assert.deepEqual(await said(engine.get<Message>('/volumes/data')), missing, label);
    assert.deepEqual((await engine.get<{ Volumes: unknown[] }>('/volumes')).body.Volumes, [], label);
    assert.deepEqual(await said(engine.delete<Message>('/volumes/data')), missing, label);
    assert.equal((await engine.delete('/volumes/forced?force=1')).status, 204, label);
  }
});

test('volumes, networks, creations and starts wait for a plugin that appears later', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-plugins-'));
  await using engine = await TestEngine.start({ flags: [`--plugin-folder=${place.path}`] });
  await using plugins = new AsyncDisposableStack();
  const volumes = async (name: string): Promise<TestPlugin> =>
    plugins.use(await volumePlugin(join(place.path, `${name}.sock`), join(place.path, 'files')));
  /** The status of a request whose plugin starts a moment later. */
  const ahead = async (path: string, body: object | undefined, start: () => Promise<TestPlugin>): Promise<number> => {
    const asked = engine.post(path, body);
    await setTimeout(300);
    await start();
    return (await asked).status;
  };

  const first = volumes.bind(undefined, 'first');
  assert.equal(await ahead('/volumes/create', { Name: 'data', Driver: 'first' }, first), 201);
  const network = async (): Promise<TestPlugin> =>
    plugins.use(
      await TestPlugin.start(join(place.path, 'net.sock'), ['NetworkDriver'], {
        'NetworkDriver.GetCapabilities': () => ({ Scope: 'local' }),
        'NetworkDriver.CreateNetwork': () => 'null',
        'NetworkDriver.DeleteNetwork': () => '',
      }),
    );
  assert.equal(await ahead('/networks/create', { Name: 'made', Driver: 'net' }, network), 201);
  assert.equal((await engine.delete('/networks/made')).status, 204);
  const HostConfig = { NetworkMode: 'none', Binds: ['data:/v'] };
  const second = { ...HostConfig, Binds: ['more:/more'], VolumeDriver: 'second' };
  const create = { Image: 'busybox', Cmd: ['true'], HostConfig: second };
  assert.equal(await ahead('/containers/create', create, volumes.bind(undefined, 'second')), 201);
  const id = await engine.create(['true'], { HostConfig });
  await plugins.disposeAsync();
  await using again = new AsyncDisposableStack();
  const back = async (): Promise<TestPlugin> =>
    again.use(await volumePlugin(join(place.path, 'first.sock'), join(place.path, 'files')));
  assert.equal(await ahead(`/containers/${id}/start`, undefined, back), 204);
  await engine.wait(id);
  await engine.delete(`/containers/${id}`);
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
  const credentials = { 'X-Registry-Auth': 'e30=', 'X-Registry-Config': 'e30=', 'X-Shown': 'yes' };
  await engine.post('/images/create?fromImage=127.0.0.1:1/x', undefined, { headers: credentials });
  const { RequestHeaders } = plugin.calls.findLast(({ method }) => method === 'AuthZPlugin.AuthZReq')!.body;
  const shown = Object.keys(RequestHeaders ?? {}).map((name) => name.toLowerCase());
  assert.deepEqual(
    Object.keys(credentials).filter((name) => shown.includes(name.toLowerCase())),
    ['X-Shown'],
  );
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
