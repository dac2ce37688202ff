import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { pluginConfig, pluginProgram, putPlugin } from '@gantry/testing/plugins/plugin-files.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Message = { message: string };
type Plugin = { Id: string; Active: boolean };
/** In front of it is one that can hold answers back. */
const UPSTREAM = '127.0.0.1:5000';
const REGISTRY = '127.0.0.1:5001';

suite('plugins of a daemon that is killed, or has a full disk', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;
  let program: Buffer;

  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    registries = await Registries.start(join(engine.directory, 'netns'));
    await registries.registry(5000);
    await registries.proxy(5001, 5000);
    program = pluginProgram();
    const layers: Record<string, Buffer>[] = [{ plugin: program }, { large: randomBytes(4_000_000) }];
    await putPlugin(registries, `${UPSTREAM}/v2/kept`, pluginConfig('VolumeDriver'), ...layers);
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const asked = async (method: 'post' | 'delete', path: string): Promise<unknown[]> => {
    const { status, body, raw } = await engine[method]<Message>(path);
    return [status, raw.length === 0 ? '' : body.message];
  };
  const pull = async (name = 'kept') =>
    await engine.post<Message>(`/plugins/pull?name=${encodeURIComponent(`${REGISTRY}/${name}`)}`);
  const plugins = async (): Promise<Plugin[]> => (await engine.get<Plugin[]>('/plugins')).body;
  const below = (...parts: string[]): string[] => {
    const folder = join(engine.directory, ...parts);
    return existsSync(folder) ? readdirSync(folder).filter((name) => !name.startsWith('.')) : [];
  };
  /** No plugin, no file of one, no mount, no process. */
  const nothing = async (): Promise<void> => {
    const trash = join(engine.dataRoot, 'plugins/.trash');
    await until(() => !existsSync(trash) || readdirSync(trash).length === 0);
    assert.deepEqual(await plugins(), []);
    assert.deepEqual(below('data', 'plugins'), []);
    const arriving = join(engine.dataRoot, 'plugins/.arriving');
    assert.deepEqual(existsSync(arriving) ? readdirSync(arriving) : [], []);
    notRunning();
  };
  const notRunning = (): void => {
    assert.deepEqual([below('exec', 'plugins'), below('exec', 'plugin-sockets')], [[], []]);
    assert.ok(!readFileSync('/proc/self/mountinfo', 'utf8').includes(`${engine.dataRoot}/plugins`));
  };
  async function until(what: () => boolean | Promise<boolean>): Promise<void> {
    const signal = AbortSignal.timeout(120_000);
    while (!(await what())) await setTimeout(5, undefined, { signal });
  }

  test('killed amid a pull, it has no plugin, and nothing of one', async () => {
    for (const path of ['manifests/latest', 'blobs/']) {
      await registries.faults({ on: `GET .*${path}`, times: 10, hold: true } as never);
      const pulling = pull().catch(() => undefined);
      await until(async () => (await registries.seen()).some(({ path: seen }) => seen.includes(path)));
      await engine.kill('SIGKILL');
      await pulling;
      await registries.faults();
      await registries.release();
      await engine.startAgain();

      await nothing();
    }
    const unpacking = pull().catch(() => undefined);
    await until(() => existsSync(join(engine.dataRoot, 'plugins/.arriving')));
    await engine.kill('SIGKILL');
    await unpacking;
    await engine.startAgain();
    if ((await plugins()).length > 0) await asked('delete', `/plugins/${REGISTRY}/kept`);
    await nothing();
    assert.equal((await pull()).status, 200);
  });

  test('killed amid an enabling or a disabling, it has a plugin that runs or one that does not', async () => {
    const [{ Id }] = (await plugins()) as [Plugin];
    const name = `${REGISTRY}/kept`;
    for (const folder of ['exec/plugin-sockets', 'exec/plugins']) {
      const enabling = asked('post', `/plugins/${name}/enable`).catch(() => undefined);
      await until(() => below(folder).length > 0);
      await engine.kill('SIGKILL');
      await enabling;
      await engine.startAgain();
      const [{ Active }] = (await plugins()) as [Plugin];

      if (Active) assert.deepEqual(await asked('post', `/plugins/${name}/disable`), [200, '']);
      else notRunning();
    }
    assert.deepEqual(await asked('post', `/plugins/${name}/enable`), [200, '']);
    const disabling = asked('post', `/plugins/${name}/disable`).catch(() => undefined);
    await until(async () => (await plugins().catch(() => []))[0]?.Active === false);
    await engine.kill('SIGKILL');
    await disabling;
    await engine.startAgain();
    assert.deepEqual(await plugins().then((all) => all.map(({ Active }) => Active)), [false]);
    notRunning();
    assert.deepEqual(await asked('post', `/plugins/${name}/enable`), [200, '']);
    assert.equal((await engine.get<Plugin>(`/plugins/${Id}`)).body.Active, true);
    assert.deepEqual(await asked('delete', `/plugins/${name}?force=1`), [200, '']);
    await nothing();
  });

  test('a full disk fails a pull and an enabling, and leaves nothing', async () => {
    await registries.faults();
    const layers: Record<string, Buffer>[] = [{ plugin: program }, { large: randomBytes(30_000_000) }];
    await putPlugin(registries, `${UPSTREAM}/v2/large`, pluginConfig('VolumeDriver'), ...layers);
    await engine.kill('SIGTERM');
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=24m', 'none', engine.dataRoot]);
    try {
      await engine.startAgain();
      const full = await pull('large');
      assert.deepEqual(
        [full.status, /no space left on device/i.test(full.body.message)],
        [500, true],
        full.raw.toString(),
      );
      await nothing();
      assert.equal((await pull()).status, 200);
      await engine.post('/plugins/nope/enable');
      execFileSync('sh', ['-c', `dd if=/dev/zero of=${engine.dataRoot}/fill bs=64k 2>/dev/null || true`]);
      const [status] = await asked('post', `/plugins/${REGISTRY}/kept/enable`);
      execFileSync('rm', [join(engine.dataRoot, 'fill')]);
      if (status !== 200) notRunning();
      else assert.deepEqual(await asked('post', `/plugins/${REGISTRY}/kept/disable`), [200, '']);
      assert.deepEqual(await asked('post', `/plugins/${REGISTRY}/kept/enable`), [200, '']);
      assert.deepEqual(await asked('delete', `/plugins/${REGISTRY}/kept?force=1`), [200, '']);
      await nothing();
      await engine.kill('SIGTERM');
    } finally {
      execFileSync('umount', [engine.dataRoot]);
      await engine.startAgain();
    }
  });
});
