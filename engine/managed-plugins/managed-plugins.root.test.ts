import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import {
  mkdirSync,
  mkdtempDisposableSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import { gantry, said } from '@gantry/testing/clients/own-client.ts';
import type { Dockerd } from '@gantry/testing/dockerd.ts';
import { pluginConfig, putPlugin, writePlugin } from '@gantry/testing/plugins/plugin-files.ts';
import { EnginesBesideRegistries } from '@gantry/testing/registries/engines-beside.ts';
import type { Registries } from '@gantry/testing/registries/registries.ts';
import type { TestEngine } from '@gantry/testing/test-engine.ts';

type Message = { message: string };
type Plugin = { Id: string; Name: string; Tag: string; Active: boolean; Config: object; Manifest: object };
type Volume = { Driver: string; Mountpoint: string; Status?: { pid: number; users: number } };
type Privilege = { Name: string; Value: string[] };

const execute = promisify(execFile);
const REGISTRY = '127.0.0.1:5000';
const KEPT = `${REGISTRY}/kept`;
const MINUTE = 60_000;

suite('managed plugins', { concurrency: false }, () => {
  let beside: EnginesBesideRegistries;
  let engine: TestEngine;
  let dockerd: Dockerd;
  let registries: Registries;
  let program: Buffer;
  const place = mkdtempDisposableSync(join(tmpdir(), 'gantry-plugin-files-'));

  before(async () => {
    beside = await EnginesBesideRegistries.start({ image: true });
    ({ engine, dockerd, registries } = beside);
    await registries.registry(5000);
    program = writePlugin(join(place.path, 'kept'), 'VolumeDriver');
    await byDocker('plugin', 'create', KEPT, join(place.path, 'kept'));
    await byDocker('plugin', 'push', KEPT);
  });
  after(async () => {
    place.remove();
    await beside[Symbol.asyncDispose]();
  });

  /** The docker command line against dockerd. */
  async function byDocker(...words: string[]): Promise<string> {
    const env = { ...process.env, DOCKER_CONFIG: join(place.path, 'docker') };
    return (await execute('docker', ['-H', `unix://${dockerd.socketPath}`, ...words], { env })).stdout;
  }
  const pull = async (name: string) =>
    await engine.post<Privilege[] & Message>(`/plugins/pull?name=${encodeURIComponent(name)}`);
  const inspect = async (name: string) => (await engine.get<Plugin>(`/plugins/${name}`)).body;
  const asked = async (method: 'post' | 'delete', path: string): Promise<unknown[]> => {
    const { status, body, raw } = await engine[method]<Message>(path);
    return [status, raw.length === 0 ? '' : body.message];
  };
  const statusOf = async (volume: string): Promise<Volume['Status']> =>
    (await engine.get<Volume>(`/volumes/${volume}`)).body.Status;
  async function until<T>(what: () => Promise<T | undefined | false>): Promise<T> {
    const signal = AbortSignal.timeout(2 * MINUTE);
    for (;;) {
      const value = await what();
      if (value !== undefined && value !== false) return value;
      await setTimeout(50, undefined, { signal });
    }
  }
  const gone = async (): Promise<void> => {
    await until(async () => await Promise.resolve(readdirSync(join(engine.dataRoot, 'plugins/.trash')).length === 0));
    const files = readdirSync(join(engine.dataRoot, 'plugins'), { recursive: true });
    assert.deepEqual(
      files.filter((file) => file !== '.arriving' && file !== '.trash'),
      [],
    );
    assert.deepEqual(readdirSync(join(engine.directory, 'exec/plugins')), []);
    assert.deepEqual(readdirSync(join(engine.directory, 'exec/plugin-sockets')), []);
    assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(`${engine.dataRoot}/plugins`));
  };

  test("a plugin is installed with dockerd's privileges, disabled, and shown as the specification says", async () => {
    const answer = await pull(KEPT);

    const { body: theirs } = await dockerd.api.get<Privilege[]>(
      `/plugins/privileges?remote=${encodeURIComponent(KEPT)}`,
    );
    assert.equal(answer.status, 200, answer.raw.toString());
    assert.deepEqual(answer.body, theirs);
    assert.deepEqual(
      answer.body.map(({ Name }) => Name),
      ['network', 'mount', 'device', 'capabilities'],
    );
    const plugin = await inspect(KEPT);
    assert.deepEqual([plugin.Name, plugin.Tag, plugin.Active], [KEPT, 'latest', false]);
    const { Mounts, ...config } = plugin.Config as { Mounts: { Destination: string }[] };
    assert.deepEqual(
      Mounts.map(({ Destination }) => Destination),
      ['/machine'],
    );
    assert.deepEqual(config, {
      Env: ['PLUGIN_KINDS="VolumeDriver"', 'PLUGIN_MODE='],
      Args: ['one', 'two'],
      Devices: [{ Name: 'null', Description: '', Path: '/dev/null', Settable: null }],
    });
    assert.deepEqual((await engine.get<Plugin[]>('/plugins')).body, [plugin]);
    assert.deepEqual(await inspect(plugin.Id.slice(0, 10)), plugin);
    assert.deepEqual(await inspect(`${KEPT}:latest`), plugin);
  });

  test('invalid requests are refused with the statuses of the specification', async () => {
    const name = `${KEPT}:latest`;
    assert.deepEqual(await asked('post', `/plugins/pull?name=${KEPT}`), [500, `plugin ${name} already exists`]);
    assert.deepEqual((await asked('post', '/plugins/pull?name='))[0], 500);
    assert.deepEqual((await asked('post', '/plugins/pull?name=A/B'))[0], 500);
    assert.deepEqual((await asked('post', `/plugins/pull?name=${REGISTRY}/nope`))[0], 500);
    assert.deepEqual(await asked('post', `/plugins/${KEPT}/disable`), [
      500,
      `plugin is already disabled: plugin ${name} found but disabled`,
    ]);
    for (const [method, path] of [
      ['post', '/plugins/nope/enable'],
      ['post', '/plugins/nope/disable'],
      ['delete', '/plugins/nope'],
    ] as const) {
      assert.deepEqual(await asked(method, path), [404, 'plugin "nope" not found']);
    }
    const made = await engine.post<Message>('/volumes/create', { Name: 'x', Driver: KEPT });
    assert.deepEqual(
      [made.status, made.body.message],
      [500, `create x: error looking up volume plugin ${KEPT}: plugin ${name} found but disabled`],
    );
    const image = await engine.post(`/images/create?fromImage=${KEPT}&tag=latest`);
    assert.match(image.raw.toString(), /unsupported media type of the configuration/);
  });

  test('refusals have the words of dockerd', async () => {
    const refused = async (of: Pick<TestEngine, 'post' | 'delete'>): Promise<string[]> => {
      const messages: string[] = [];
      for (const [method, path] of [
        ['post', `/plugins/${KEPT}/disable`],
        ['post', `/plugins/${KEPT}/enable?timeout=30`],
        ['post', `/plugins/${KEPT}/enable?timeout=30`],
        ['delete', `/plugins/${KEPT}`],
        ['post', `/plugins/${KEPT}/disable`],
        ['post', '/plugins/nope/enable?timeout=30'],
        ['delete', '/plugins/nope'],
      ] as const) {
        const answer = await of[method]<Message>(path);
        messages.push(answer.raw.length === 0 ? '' : answer.body.message);
      }
      return messages;
    };

    assert.deepEqual(await refused(engine), await refused(dockerd.api));
  });

  test('an enabled one serves volumes; it outlives the daemon, and is started again when it dies', async () => {
    assert.deepEqual(await asked('post', `/plugins/${KEPT}/enable`), [200, '']);
    assert.deepEqual(await asked('post', `/plugins/${KEPT}/enable`), [
      500,
      `plugin already enabled: plugin ${KEPT}:latest is enabled`,
    ]);
    assert.deepEqual(await asked('delete', `/plugins/${KEPT}`), [500, `plugin ${KEPT}:latest is enabled`]);
    const { body: info } = await engine.get<{ Plugins: { Volume: string[] } }>('/info');
    assert.deepEqual(info.Plugins.Volume, ['local', `${KEPT}:latest`]);
    const made = await engine.post<Volume>('/volumes/create', { Name: 'data', Driver: KEPT });
    assert.equal(made.status, 201, made.raw.toString());
    assert.equal(made.body.Driver, `${KEPT}:latest`);
    const { Id: plugin } = await inspect(KEPT);
    assert.ok(readdirSync(join(engine.dataRoot, 'plugins', plugin)).includes('output.log'));
    assert.equal(made.body.Mountpoint, join(engine.dataRoot, 'plugins', plugin, 'propagated-mount/data'));
    const id = await engine.run(['sh', '-c', 'echo hello >/v/file; sleep 600'], {
      HostConfig: { NetworkMode: 'none', Binds: ['data:/v'] },
    });
    const before = await until(async () => await statusOf('data'));
    assert.equal(before.users, 1);

    await engine.kill('SIGKILL');
    await engine.startAgain();

    assert.deepEqual(await statusOf('data'), before);
    assert.equal((await inspect(KEPT)).Active, true);
    const [pid] = await processesOf(plugin);
    process.kill(pid!, 'SIGKILL');
    await until(async () => (await processesOf(plugin)).some((other) => other !== pid));
    assert.deepEqual(await statusOf('data'), before);
    const [next] = await processesOf(plugin);
    const { stdout: shim } = await execute('pgrep', ['-nf', `gantry-shim --id ${plugin}`]);
    process.kill(Number(shim), 'SIGKILL');
    await until(async () => {
      const processes = await processesOf(plugin);
      return processes.length === 1 && processes[0] !== next;
    });
    assert.deepEqual(await statusOf('data'), before);
    const file = join(engine.dataRoot, 'plugins', plugin, 'rootfs/data/data/file');
    await until(async () => await Promise.resolve(readFileSync(file, 'utf8') === 'hello\n'));
    assert.deepEqual(await asked('post', `/plugins/${KEPT}/disable`), [500, `plugin ${KEPT}:latest is in use`]);
    await engine.delete(`/containers/${id}?force=1`);
    await until(async () => (await statusOf('data'))?.users === 0);
    assert.equal((await engine.delete('/volumes/data')).status, 204);
  });

  test('a socket that becomes a link, a file or a folder is not asked, and nor is the target of the link', async () => {
    const { Id } = await inspect(KEPT);
    const [folder] = readdirSync(join(engine.directory, 'exec/plugin-sockets')).filter((name) => Id.startsWith(name));
    const socket = join(engine.directory, 'exec/plugin-sockets', folder!, 'test.sock');
    const asks: string[] = [];
    const other = createServer((request, response) => {
      asks.push(request.url ?? '');
      response.end('{"Volumes":[]}');
    });
    await new Promise<void>((done) => other.listen(join(place.path, 'other.sock'), done));
    renameSync(socket, `${socket}.kept`);
    for (const replace of [
      () => symlinkSync(join(place.path, 'other.sock'), socket),
      () => symlinkSync(`${socket}.kept`, socket),
      () => writeFileSync(socket, ''),
      () => mkdirSync(socket),
    ]) {
      replace();

      const { status, body } = await engine.post<Message>('/volumes/create', { Name: 'linked', Driver: KEPT });

      assert.deepEqual([status, asks], [500, []]);
      assert.match(body.message, /its test\.sock is not a socket/);
      rmSync(socket, { recursive: true });
    }
    other.close();
    renameSync(`${socket}.kept`, socket);
    assert.equal((await engine.post('/volumes/create', { Name: 'linked', Driver: KEPT })).status, 201);
    assert.equal((await engine.delete('/volumes/linked')).status, 204);
  });

  test('a daemon without live-restore ends it, and the next one starts it', async () => {
    const { Id: plugin } = await inspect(KEPT);

    await engine.kill('SIGTERM');
    assert.equal((await processesOf(plugin)).length, 1);
    await engine.startAgain(['--bridge=none', '--live-restore=false']);
    await engine.get('/_ping');
    await engine.kill('SIGTERM');
    assert.deepEqual(await processesOf(plugin), []);
    await engine.startAgain(['--bridge=none']);

    assert.equal((await engine.post('/volumes/create', { Name: 'again', Driver: `${KEPT}:latest` })).status, 201);
    assert.equal((await engine.delete('/volumes/again')).status, 204);
  });

  test('a disabled one is gone, can be enabled again, and is removed with all its files', async () => {
    const { Id: plugin } = await inspect(KEPT);

    assert.deepEqual(await asked('post', `/plugins/${KEPT}/disable`), [200, '']);
    assert.deepEqual(await processesOf(plugin), []);
    assert.equal((await inspect(KEPT)).Active, false);
    assert.deepEqual(await asked('post', `/plugins/${KEPT}/enable`), [200, '']);
    assert.deepEqual(await asked('delete', `/plugins/${KEPT}?force=1`), [200, '']);

    assert.equal((await engine.get(`/plugins/${KEPT}`)).status, 404);
    await gone();
    const { raw } = await engine.get(
      `/events?since=0&until=${Math.ceil(Date.now() / 1000)}&filters={"type":["plugin"]}`,
    );
    const actions = [...raw.toString().matchAll(/"Action":"(\w+)"/g)].map(([, action]) => action);
    assert.deepEqual(actions, ['pull', 'enable', 'disable', 'enable', 'disable', 'enable', 'disable', 'remove']);
  });

  test('one that ends or does not listen is not enabled, and nothing of it is left running', async () => {
    for (const [name, query, reason] of [
      ['ends', '', /ended with the code 3 before it listened/],
      ['silent', '?timeout=1', /does not answer/],
    ] as const) {
      await putPlugin(registries, `${REGISTRY}/v2/${name}`, pluginConfig('VolumeDriver', name), { plugin: program });
      await pull(`${REGISTRY}/${name}`);
      const { Id: plugin } = await inspect(`${REGISTRY}/${name}`);

      const [status, message] = await asked('post', `/plugins/${REGISTRY}/${name}/enable${query}`);

      assert.equal(status, 500);
      assert.match(String(message), reason);
      assert.deepEqual(await processesOf(plugin), []);
      assert.equal((await inspect(`${REGISTRY}/${name}`)).Active, false);
      assert.deepEqual(await asked('delete', `/plugins/${REGISTRY}/${name}`), [200, '']);
    }
    await gone();
  });

  test('the command line installs, shows and removes plugins, and asks before it grants their wishes', async () => {
    const name = `${REGISTRY}/kept`;
    const declined = await gantry(engine, ['plugin', 'install', name], { stdin: 'n\n' });
    assert.deepEqual([declined.code, (await engine.get<unknown[]>('/plugins')).body], [1, []]);
    assert.match(declined.stderr, /- network: \[host\]\n - mount: \[\/etc\/hostname\]\n/);
    assert.equal((await gantry(engine, ['plugin', 'install', name])).code, 1, 'nobody to ask');

    assert.equal((await gantry(engine, ['plugin', 'install', name], { stdin: 'y\n' })).stdout, `${name}\n`);

    const list = await said(engine, 'plugin', 'ls', '--format', '{{.Name}} {{.Description}} {{.Enabled}}');
    assert.equal(list, `${name}:latest a plugin for tests true`);
    assert.match(await said(engine, 'plugin', 'ls'), /^ID +NAME +DESCRIPTION +ENABLED\n[0-9a-f]{12} /);
    assert.equal(await said(engine, 'plugin', 'inspect', '-f', '{{.Active}} {{.Tag}}', name), 'true latest');
    assert.match((await gantry(engine, ['plugin', 'rm', name])).stderr, /is enabled/);
    assert.equal(await said(engine, 'plugin', 'disable', name), name);
    assert.equal(await said(engine, 'plugin', 'enable', '--timeout', '60', name), name);
    assert.equal(await said(engine, 'plugin', 'rm', '-f', name), name);
    assert.equal(await said(engine, 'plugin', 'install', '--disable', '--grant-all-permissions', name), name);
    assert.equal(await said(engine, 'plugin', 'inspect', '-f', '{{.Active}}', name), 'false');
    assert.equal(await said(engine, 'plugin', 'rm', name), name);
    await gone();
  });

  test('one of two layers is asked for authorization, and is there before the daemon listens', async () => {
    const layers: Record<string, Buffer>[] = [
      { plugin: program, old: program },
      { '.wh.old': Buffer.alloc(0), new: program },
    ];
    await putPlugin(registries, `${REGISTRY}/v2/authz`, pluginConfig('authz'), ...layers);
    await pull(`${REGISTRY}/authz`);
    assert.deepEqual(await asked('post', `/plugins/${REGISTRY}/authz/enable`), [200, '']);
    const { Id: plugin } = await inspect(`${REGISTRY}/authz`);
    const files = readdirSync(join(engine.dataRoot, 'plugins', plugin, 'rootfs'));
    assert.deepEqual([files.includes('plugin'), files.includes('new'), files.includes('old')], [true, true, false]);
    await engine.kill('SIGTERM');
    await engine.startAgain(['--bridge=none', `--authorization-plugin=${REGISTRY}/authz`]);

    const refused = await engine.get<Message>('/containers/forbidden/json');

    assert.deepEqual(
      [refused.status, refused.body.message],
      [403, `authorization denied by plugin ${REGISTRY}/authz: not that`],
    );
    assert.deepEqual(await asked('post', `/plugins/${REGISTRY}/authz/disable`), [
      500,
      `plugin ${REGISTRY}/authz:latest is in use`,
    ]);
    await engine.kill('SIGTERM');
    await engine.startAgain(['--bridge=none']);
    assert.deepEqual(await asked('delete', `/plugins/${REGISTRY}/authz?force=1`), [200, '']);
    await gone();
  });
});

/** Processes of a plugin, by its cgroup. */
async function processesOf(plugin: string): Promise<number[]> {
  const { stdout } = await execute('sh', ['-c', `grep -ls ${plugin} /proc/[0-9]*/cgroup || true`]);
  return stdout
    .split('\n')
    .flatMap((path) => /^\/proc\/(\d+)\//.exec(path)?.[1] ?? [])
    .map(Number);
}
