import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';

import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Fields = Record<string, unknown>;

/** Fields of `/info` that are not as dockerd's, each with the reason. Those of the first two kinds it does not have at all. */
const INFO = {
  ClusterAdvertise: 'of the specification; dockerd leaves it out when it is empty',
  ClusterStore: 'the same',
  EngineRootDir: 'of the specification; dockerd has DockerRootDir alone, and we have both',
  InitPath: 'of the specification, and empty: an init program is looked for at each start',
  InitSha1: 'the same',
  SystemStatus: 'of the specification, and null outside of a cluster of the old kind',
  ContainerdCommit: 'there is no containerd',
  CDISpecDirs: 'of 1.44',
  DiscoveredDevices: 'of 1.50',
  RuncCommit: 'no version of runc is expected',
  InitBinary: 'the program is found on the machine, and needs not be there',
  DefaultRuntime: 'crun, where it is installed',
  Runtimes: 'those that are found, and those of the settings; no shims of containerd',
  DockerRootDir: 'its own',
  ID: 'an id like those of other objects',
  LiveRestoreEnabled: 'containers outlive the daemon unless the settings say otherwise',
  NFd: 'its own',
  NGoroutines: 'what waits for something',
  Plugins: 'its own drivers',
  ServerVersion: 'its own',
  SystemTime: 'the time of the answer',
};

const VERSION = {
  ApiVersion: 'the newest complete version',
  BuildTime: 'it is not built',
  Components: 'there is one',
  Experimental: 'of the specification; dockerd leaves it out when it is false',
  GitCommit: 'a copy of the files does not know it',
  GoVersion: "Node's",
  Platform: 'a name of its own',
  Version: 'its own',
};

test('every field of /info and /version is as in dockerd, or it is known why not', async () => {
  await using engine = await TestEngine.start({ image: false, flags: ['--bridge=none'] });
  const netns = join(engine.directory, 'netns');
  await using dockerd = await Dockerd.start(['--bridge=none', '--iptables=false'], netns);
  for (const [path, chosen] of [
    ['/info', INFO],
    ['/version', VERSION],
  ] as const) {
    const ours = (await engine.get<Fields>(path)).body;
    const theirs = (await dockerd.api.get<Fields>(path)).body;

    const names = new Set([...Object.keys(ours), ...Object.keys(theirs)]);
    const others = [...names].filter((name) => JSON.stringify(ours[name]) !== JSON.stringify(theirs[name]));

    assert.deepEqual(
      others.filter((name) => !Object.hasOwn(chosen, name)),
      [],
      path,
    );
    assert.deepEqual(
      Object.keys(theirs).filter((name) => ours[name] === undefined),
      [],
      path,
    );
    const kinds = others.filter((name) => theirs[name] !== undefined && typeof ours[name] !== typeof theirs[name]);
    assert.deepEqual(kinds, [], path);
  }
});

test('counts of /info are those of the lists', async () => {
  await using engine = await TestEngine.start({ flags: ['--label=a=b', '--debug'] });
  const netless = { HostConfig: { NetworkMode: 'none' } };
  await engine.run(['sleep', '600'], netless, 'running');
  await engine.run(['sleep', '600'], netless, 'paused');
  await engine.post('/containers/paused/pause');
  await engine.create(['true'], netless, 'created');

  const { body } = await engine.get<Fields>('/info');

  const { Containers, ContainersRunning, ContainersPaused, ContainersStopped, Images, Labels, Debug } = body;
  assert.deepEqual(
    [Containers, ContainersRunning, ContainersPaused, ContainersStopped, Images, Labels, Debug],
    [3, 1, 1, 1, 1, ['a=b'], true],
  );
  assert.ok(Number(body.NFd) > 3 && Number(body.NGoroutines) > 0);
  assert.equal(Number(body.MemTotal) > 0 && Number(body.NCPU) > 0, true);
});
