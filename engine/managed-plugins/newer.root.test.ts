import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempDisposableSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { Api } from '@gantry/testing/api.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { pluginConfig, pluginProgram, writePlugin } from '@gantry/testing/plugins/plugin-files.ts';
import { EnginesBesideRegistries } from '@gantry/testing/registries/engines-beside.ts';
import type { Registries } from '@gantry/testing/registries/registries.ts';

type Message = { message: string };
type Plugin = {
  Id: string;
  Name: string;
  Enabled: boolean;
  PluginReference: string;
  Config: { Env: object[] };
  Settings: { Env: string[]; Args: string[]; Mounts: { Source: string }[] };
};
type Line = { status?: string; id?: string; error?: string };

const execute = promisify(execFile);
const MADE = '127.0.0.1:5000/made';
const OTHER = '127.0.0.1:5000/other';

suite('managed plugins of newer versions', { concurrency: false }, () => {
  let beside: EnginesBesideRegistries;
  let registries: Registries;
  /** Ours, then dockerd. */
  let both: Api[];
  const place = mkdtempDisposableSync(join(tmpdir(), 'gantry-newer-plugins-'));

  before(async () => {
    beside = await EnginesBesideRegistries.start({ version: '1.41' });
    ({ registries } = beside);
    both = [beside.engine, beside.dockerd.api].map(({ socketPath }) => new Api(socketPath, '/v1.41'));
    await registries.registry(5000);
    writePlugin(join(place.path, 'made'), 'VolumeDriver');
  });
  after(async () => {
    place.remove();
    await beside[Symbol.asyncDispose]();
  });

  const docker = async (on: Api, ...words: string[]): Promise<string> => {
    const env = { ...process.env, DOCKER_CONFIG: join(place.path, 'docker'), DOCKER_API_VERSION: '1.41' };
    return (await execute('docker', ['-H', `unix://${on.socketPath}`, ...words], { env })).stdout;
  };
  const inspect = async (on: Api, name: string): Promise<Plugin> => {
    const { body, raw, status } = await on.get<Plugin>(`/plugins/${name}/json`);
    assert.equal(status, 200, raw.toString());
    return body;
  };
  const lines = (raw: Buffer): Line[] =>
    raw
      .toString()
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => JSON.parse(line) as Line);
  const ask = async (on: Api, method: 'get' | 'post' | 'delete', path: string, body?: unknown) => {
    const asked = path;
    return method === 'post' ? await on.post<Message>(asked, body) : await on[method]<Message>(asked);
  };

  test('a plugin that is made by one engine is pushed, installed and used by the other', async () => {
    for (const [maker, user] of [both, both.toReversed()] as [Api, Api][]) {
      await docker(maker, 'plugin', 'create', MADE, join(place.path, 'made'));
      const pushed = await docker(maker, 'plugin', 'push', MADE);
      if (maker === both[0]) assert.match(pushed, /latest: digest: sha256:[0-9a-f]{64} size: \d+/);
      const privileges = await Promise.all(
        both.map(async (on) => (await on.get(`/plugins/privileges?remote=${MADE}`)).body),
      );
      assert.deepEqual(privileges[0], privileges[1]);

      await docker(user, 'plugin', 'install', '--grant-all-permissions', '--alias', 'mine', MADE, 'PLUGIN_MODE=');

      const plugin = await inspect(user, 'mine');
      assert.deepEqual([plugin.Name, plugin.Enabled, plugin.PluginReference], ['mine:latest', true, `${MADE}:latest`]);
      assert.equal((await user.post('/volumes/create', { Name: 'kept', Driver: 'mine' })).status, 201);
      assert.equal((await user.delete('/volumes/kept')).status, 204);
      await docker(user, 'plugin', 'disable', 'mine');
      await docker(user, 'plugin', 'rm', 'mine');
      await docker(maker, 'plugin', 'rm', MADE);
    }
  });

  test('settings change a disabled plugin, and refusals nothing', async () => {
    for (const on of both) await docker(on, 'plugin', 'create', MADE, join(place.path, 'made'));

    const rows: readonly (readonly [changes: string[], isTaken: boolean])[] = [
      [['PLUGIN_MODE=quick'], true],
      [['PLUGIN_MODE.value=a=b'], true],
      [['words=x y z'], true],
      [['PLUGIN_KINDS=none'], false],
      [['machine.source=/etc/passwd'], false],
      [['NOPE=1'], false],
      [['=1'], false],
      [['PLUGIN_MODE.name=x'], false],
      [['PLUGIN_MODE=later', 'NOPE=1'], false],
    ];
    for (const [changes, isTaken] of rows) {
      const found = [];
      for (const on of both) {
        const before = (await inspect(on, MADE)).Settings;
        const { status } = await ask(on, 'post', `/plugins/${MADE}/set`, changes);
        const { Settings } = await inspect(on, MADE);
        assert.equal(status === 204, isTaken, `${changes.join(' ')}: ${status}`);
        if (!isTaken && on === both[0]) assert.deepEqual([status, Settings], [400, before]);
        found.push({ Env: Settings.Env, Args: Settings.Args });
      }
      if (isTaken) assert.deepEqual(found[0], found[1]);
    }
    await docker(both[0]!, 'plugin', 'enable', MADE);
    const active = await ask(both[0]!, 'post', `/plugins/${MADE}/set`, ['PLUGIN_MODE=']);
    assert.equal(active.status, 409);
    assert.match(active.body.message, /active/);
    await docker(both[0]!, 'plugin', 'disable', MADE);
  });

  test('an upgrade takes the files and settings of another plugin, and keeps the name', async () => {
    writePlugin(join(place.path, 'other'), 'VolumeDriver');
    const config = { ...pluginConfig('VolumeDriver', 'other'), Description: 'another one' };
    writeFileSync(join(place.path, 'other/config.json'), JSON.stringify(config));
    const [engine, dockerd] = both as [Api, Api];
    await docker(dockerd, 'plugin', 'create', OTHER, join(place.path, 'other'));
    await docker(dockerd, 'plugin', 'push', OTHER);
    const { Id } = await inspect(engine, MADE);

    const refused = await ask(engine, 'post', `/plugins/${MADE}/upgrade?remote=${OTHER}`, []);
    await docker(engine, 'plugin', 'upgrade', '--grant-all-permissions', '--skip-remote-check', MADE, OTHER);

    assert.equal(refused.status, 400);
    const plugin = await inspect(engine, MADE);
    assert.deepEqual([plugin.Id, plugin.Name, plugin.PluginReference], [Id, `${MADE}:latest`, `${OTHER}:latest`]);
    assert.ok(plugin.Settings.Env.includes('PLUGIN_MODE=other'));
    const folder = join(beside.engine.dataRoot, 'plugins', Id);
    assert.equal(readdirSync(folder).filter((name) => name.startsWith('rootfs')).length, 1);
    await beside.engine.kill('SIGKILL');
    await beside.engine.startAgain();
    await docker(engine, 'plugin', 'push', MADE);
    assert.equal((await ask(engine, 'delete', `/plugins/${MADE}`)).status, 200);
    assert.deepEqual(
      readdirSync(join(beside.engine.dataRoot, 'plugins')).filter((name) => !name.startsWith('.')),
      [],
    );
  });

  test('the list has the filters of dockerd', async () => {
    await docker(both[0]!, 'plugin', 'create', MADE, join(place.path, 'made'));
    for (const on of both) {
      for (const [filters, isListed] of [
        ['{"enabled":["false"]}', true],
        ['{"enabled":["true"]}', false],
        ['{"capability":["volumedriver"]}', true],
        ['{"capability":["authz"]}', false],
        ['{"capability":["volumedriver"],"enabled":["false"]}', true],
      ] as const) {
        const { body } = await on.get<Plugin[]>(`/plugins?filters=${encodeURIComponent(filters)}`);
        assert.equal(
          body.some(({ Name }) => Name === `${MADE}:latest`),
          isListed,
          filters,
        );
      }
      const { status } = await on.get(`/plugins?filters=${encodeURIComponent('{"colour":["red"]}')}`);
      assert.equal(status, 400);
    }
  });

  test('permissions that were not granted are refused before anything is downloaded', async () => {
    for (const on of both) {
      const refused = await ask(on, 'post', `/plugins/pull?remote=${OTHER}&name=never`, []);
      assert.notEqual(refused.status, 204);
      assert.match(refused.raw.toString(), /incorrect privileges/);
      assert.equal((await on.get('/plugins/never/json')).status, 404);
    }
  });

  const program = pluginProgram();
  const wrong: Readonly<Record<string, () => Buffer>> = {
    'config.json is a link to a file of the machine': () =>
      new TarWriter()
        .add({ name: 'config.json', type: 'symlink', linkName: '/etc/passwd' })
        .add({ name: 'rootfs/', type: 'directory' })
        .end(),
    'rootfs is a link': () =>
      new TarWriter()
        .add({ name: 'config.json', content: JSON.stringify(pluginConfig('VolumeDriver')) })
        .add({ name: 'rootfs', type: 'symlink', linkName: '/etc' })
        .end(),
    'there is no rootfs': () =>
      new TarWriter()
        .add({ name: 'config.json', content: JSON.stringify(pluginConfig('VolumeDriver')) })
        .add({ name: 'plugin', content: program })
        .end(),
    'the configuration is no JSON': () =>
      new TarWriter().add({ name: 'config.json', content: '{' }).add({ name: 'rootfs/', type: 'directory' }).end(),
    'the archive is cut': () => new TarWriter().add({ name: 'config.json', content: '{}' }).end().subarray(0, 700),
  };
  for (const [name, archive] of Object.entries(wrong)) {
    test(`an archive is refused, and nothing is left: ${name}`, async () => {
      const [engine] = both as [Api];

      const { status, body } = await engine.post<Message>('/plugins/create?name=wrong', archive());

      assert.ok(status >= 400, String(status));
      assert.doesNotMatch(body.message, /ENO|ELOOP|Unexpected/);
      assert.equal((await engine.get('/plugins/wrong/json')).status, 404);
      assert.deepEqual(readdirSync(join(beside.engine.dataRoot, 'plugins/.arriving')), []);
    });
  }

  test('the stream of a pull has the lines that a client shows', async () => {
    const [engine] = both as [Api];
    const { body: granted } = await engine.get(`/plugins/privileges?remote=${OTHER}`);

    const { raw, status } = await engine.post(`/plugins/pull?remote=${OTHER}`, granted);

    assert.equal(status, 200);
    const said = lines(raw).map(({ status: text = '' }) => text);
    assert.ok(said.includes('Download complete'));
    assert.match(said.at(-2) ?? '', /^Digest: sha256:/);
    assert.equal(said.at(-1), `Status: Downloaded newer image for ${OTHER}:latest`);
  });
});
