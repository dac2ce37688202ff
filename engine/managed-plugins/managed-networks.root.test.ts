import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import type { NetworkWire } from '@gantry/engine/networks/schema.ts';
import { pluginConfig, pluginProgram, putPlugin } from '@gantry/testing/plugins/plugin-files.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Message = { message: string };
const execute = promisify(execFile);
const REGISTRY = '127.0.0.1:5000';
const WIRED = `${REGISTRY}/wired`;

suite('managed plugins of networks and addresses', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;

  before(async () => {
    engine = await TestEngine.start();
    registries = await Registries.start(join(engine.directory, 'netns'));
    await registries.registry(5000);
    await putPlugin(registries, `${REGISTRY}/v2/wired`, pluginConfig('NetworkDriver'), { plugin: pluginProgram() });
    assert.equal((await engine.post(`/plugins/pull?name=${encodeURIComponent(WIRED)}`)).status, 200);
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const create = async (): Promise<[number, string]> => {
    const body = { Name: 'wired', Driver: WIRED, IPAM: { Driver: `${WIRED}:latest` } };
    const { status, body: answer } = await engine.post<Message>('/networks/create', body);
    return [status, answer.message];
  };
  const run = async (name: string): Promise<string> => {
    await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'wired' } }, name);
    return (await inspect(name)).NetworkSettings.Networks['wired']!.IPAddress;
  };
  const inspect = async (ref: string): Promise<Inspect> => (await engine.get<Inspect>(`/containers/${ref}/json`)).body;
  const pings = async (from: string, ip: string): Promise<string> => {
    const enter = ['-t', String((await inspect(from)).State.Pid), '-n', 'busybox', 'ping', '-c', '1', '-w', '60', ip];
    return (await execute('nsenter', enter)).stdout;
  };
  const asked = async (path: string): Promise<[number, string]> => {
    const { status, body, raw } = await engine.post<Message>(path);
    return [status, raw.length === 0 ? '' : body.message];
  };
  const processesOf = async (plugin: string): Promise<number[]> => {
    const { stdout } = await execute('sh', ['-c', `grep -ls ${plugin} /proc/[0-9]*/cgroup || true`]);
    return [...stdout.matchAll(/^\/proc\/(\d+)\//gm)].map(([, pid]) => Number(pid));
  };

  test('its networks carry traffic, over its crash, and over that of the daemon', async () => {
    assert.deepEqual(await create(), [404, `plugin ${WIRED}:latest found but disabled`]);
    assert.deepEqual(await asked(`/plugins/${WIRED}/enable`), [200, '']);
    assert.equal((await create())[0], 201);
    const { body: network } = await engine.get<NetworkWire>('/networks/wired');
    assert.deepEqual([network.Driver, network.IPAM.Driver], [`${WIRED}:latest`, `${WIRED}:latest`]);
    assert.equal(network.IPAM.Config[0]!.Subnet, '10.78.0.0/24');
    const first = await run('a');
    await run('b');

    assert.match(await pings('b', first), /1 packets received/);
    const { Id } = (await engine.get<{ Id: string }>(`/plugins/${WIRED}`)).body;
    const [pid] = await processesOf(Id);
    process.kill(pid!, 'SIGKILL');
    const deadline = AbortSignal.timeout(60_000);
    while (!(await processesOf(Id)).some((other) => other !== pid))
      await setTimeout(50, undefined, { signal: deadline });
    await run('c');
    assert.match(await pings('c', first), /1 packets received/);
    await engine.kill('SIGKILL');
    await engine.startAgain();
    await run('d');
    assert.match(await pings('d', first), /1 packets received/);
  });

  test('it is in use as long as there is a network of it', async () => {
    const refused = [500, `plugin ${WIRED}:latest is in use`];
    assert.deepEqual(await asked(`/plugins/${WIRED}/disable`), refused);
    for (const name of ['a', 'b', 'c', 'd']) await engine.delete(`/containers/${name}?force=1`);
    assert.deepEqual(await asked(`/plugins/${WIRED}/disable`), refused);
    assert.equal((await engine.delete('/networks/wired')).status, 204);

    assert.deepEqual(await asked(`/plugins/${WIRED}/disable`), [200, '']);
    assert.doesNotMatch(await engine.onHost(['ip', '-brief', 'link']), /^m[boi][0-9a-f]{10}/m);
    assert.equal((await engine.delete(`/plugins/${WIRED}`)).status, 200);
  });
});
