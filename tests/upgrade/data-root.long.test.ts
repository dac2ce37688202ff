import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { NOW, removeRelease, unpackRelease } from './older-release.ts';

/** The commit of release 0.2.0. It has to be in the repository's history. */
const FROM = process.env.GANTRY_UPGRADE_DATA_FROM ?? 'b8c34280';

type Inspect = {
  Id: string;
  State: { Pid: number; Running: boolean; ExitCode: number; StartedAt: string };
  RestartCount: number;
  HostConfig: { RestartPolicy: object };
  NetworkSettings: { Networks: Record<string, { IPAddress: string }> };
};
type Named = { Name: string; Id: string };

/** The fields that an upgrade leaves alone. */
const kept = ({ Id, State, HostConfig, NetworkSettings }: Inspect): unknown => [
  Id,
  State.Pid,
  State.StartedAt,
  State.ExitCode,
  HostConfig.RestartPolicy,
  Object.entries(NetworkSettings.Networks).map(([name, { IPAddress }]) => [name, IPAddress]),
];

/** `./gantry test tests/upgrade`: the sources of then are unpacked and built first. */
suite('the data of an older release', { concurrency: false }, () => {
  let then: string;
  let engine: TestEngine;
  before(async () => {
    then = unpackRelease(FROM);
    engine = await TestEngine.start({ sources: then });
    await engine.post('/networks/create', { Name: 'front', Labels: { of: 'then' } });
    await engine.post('/volumes/create', { Name: 'kept', Labels: { of: 'then' } });
    const HostConfig = { NetworkMode: 'front', Binds: ['kept:/data'], RestartPolicy: { Name: 'always' } };
    const script = 'echo written > /data/file; n=0; while :; do echo tick $((n += 1)); sleep 1; done';
    await engine.run(['sh', '-c', script], { HostConfig }, 'running');
    await engine.run(['sleep', '10000'], { HostConfig: { NetworkMode: 'front' } }, 'peer');
    const ended = await engine.run(['sh', '-c', 'echo last words; exit 7'], {}, 'ended');
    assert.equal(await engine.wait(ended), 7);
    assert.equal((await engine.post('/commit?container=ended&repo=committed&tag=1')).status, 201);
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    removeRelease(then);
  });

  const inspect = async (name: string): Promise<Inspect> =>
    (await engine.get<Inspect>(`/containers/${name}/json`)).body;
  const all = async (): Promise<unknown[]> => {
    const containers = await Promise.all(['running', 'peer', 'ended'].map(inspect));
    const { body: networks } = await engine.get<Named[]>('/networks');
    const { body: volumes } = await engine.get<{ Volumes: Named[] }>('/volumes');
    const { body: images } = await engine.get<{ Id: string; RepoTags: string[] }[]>('/images/json');
    return [
      containers.map(kept),
      networks.map(({ Name, Id }) => `${Name} ${Id}`).toSorted(),
      volumes.Volumes.map(({ Name }) => Name),
      images.map(({ Id, RepoTags }) => `${Id} ${RepoTags.join(' ')}`).toSorted(),
    ];
  };
  async function output(name: string, command: readonly string[]): Promise<string> {
    const { body } = await engine.post<{ Id: string }>(`/containers/${name}/exec`, {
      Cmd: command,
      AttachStdout: true,
    });
    return (await engine.post(`/exec/${body.Id}/start`, { Detach: false })).raw.toString();
  }
  async function goesOn(): Promise<void> {
    assert.match(await output('running', ['cat', '/data/file']), /written/);
    assert.match(await output('running', ['nslookup', 'peer']), /Address[^\n]*\d+\.\d+\.\d+\.\d+/);
    const lines = async (): Promise<number> => (await engine.output('running')).stdout.split('tick').length;
    const before = await lines();
    await eventually('it writes on', async () => (await lines()) > before);
  }

  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    test(`is taken over from a daemon of then that ended by ${signal}`, async () => {
      await engine.kill('SIGTERM');
      engine.sources = then;
      await engine.startAgain();
      const before = await all();

      await engine.kill(signal);
      engine.sources = NOW;
      await engine.startAgain();

      assert.deepEqual(await all(), before);
      await goesOn();
    });
  }

  test('is used further: containers end and start again, images and networks are used and removed', async () => {
    assert.equal((await engine.post('/containers/running/restart?t=0')).status, 204);
    assert.equal((await inspect('running')).State.Running, true);
    await goesOn();
    assert.match((await engine.output('ended')).stdout, /last words/);
    const again = await engine.create(['true'], { Image: 'committed:1' });
    assert.equal((await engine.post(`/containers/${again}/start`)).status, 204);
    assert.equal(await engine.wait(again), 0);
    for (const name of ['running', 'peer', 'ended', again])
      assert.equal((await engine.delete(`/containers/${name}?force=1&v=1`)).status, 204);
    assert.equal((await engine.delete('/networks/front')).status, 204);
    assert.equal((await engine.delete('/volumes/kept')).status, 204);
    assert.equal((await engine.delete('/images/committed:1')).status, 200);
    assert.ok(!engine.log.includes('"level":50'), engine.log);
  });
});
