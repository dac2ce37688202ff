import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { Api } from '@gantry/testing/api.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { NEWEST } from '../http/versions/api-version.ts';

type Fields = Record<string, unknown>;

/** The specification's list, unchanged. */
const INFO =
  `Architecture, ClusterStore, CgroupDriver, Containers, ContainersRunning, ContainersStopped, ContainersPaused,
  CpuCfsPeriod, CpuCfsQuota, Debug, EngineRootDir, Driver, DriverStatus, ExperimentalBuild, HttpProxy, HttpsProxy, ID,
  IPv4Forwarding, Images, IndexServerAddress, InitPath, InitSha1, KernelMemory, KernelVersion, Labels, MemTotal,
  MemoryLimit, NCPU, NEventsListener, NFd, NGoroutines, Name, NoProxy, OomKillDisable, OSType, OperatingSystem, Plugins,
  RegistryConfig, SecurityOptions, ServerVersion, SwapLimit, SystemStatus, SystemTime`.split(/,\s+/);
const VERSION = 'Version, Os, KernelVersion, GoVersion, GitCommit, Arch, ApiVersion, BuildTime, Experimental'.split(
  ', ',
);

suite('/info and /version', { concurrency: false }, () => {
  let engine: TestEngine;
  let dockerd: Dockerd;
  before(async () => {
    const flags = ['--label=tier=test', '--log-driver=json-file'];
    [engine, dockerd] = await Promise.all([
      TestEngine.start({ flags }),
      Dockerd.start([...flags, '--bridge=none', '--iptables=false']),
    ]);
  });
  after(async () => {
    await Promise.all([engine[Symbol.asyncDispose](), dockerd[Symbol.asyncDispose]()]);
  });

  for (const [path, specified] of [
    ['/info', INFO],
    ['/version', VERSION],
  ] as const) {
    test(`${path} has every field of the specification and every one of dockerd`, async () => {
      const [ours, theirs] = [await engine.get<Fields>(path), await dockerd.api.get<Fields>(path)];

      assert.deepEqual(missing([...specified, ...Object.keys(theirs.body)], ours.body), []);
    });
  }

  test('their nested fields and their types are those of dockerd', async () => {
    for (const path of ['/info', '/version']) {
      const [ours, theirs] = [await engine.get<Fields>(path), await dockerd.api.get<Fields>(path)];
      assert.deepEqual(differences(ours.body, theirs.body, path), []);
    }
  });

  test('both report the same machine', async () => {
    const same =
      `Architecture CgroupDriver CgroupVersion CpuCfsPeriod CpuCfsQuota CPUSet CPUShares Driver IPv4Forwarding
      KernelMemory KernelMemoryTCP KernelVersion Labels LoggingDriver MemTotal MemoryLimit NCPU Name OomKillDisable OSType
      OSVersion OperatingSystem PidsLimit SecurityOptions SwapLimit Swarm IndexServerAddress ExecutionDriver`.split(
        /\s+/,
      );
    const [ours, theirs] = [await engine.get<Fields>('/info'), await dockerd.api.get<Fields>('/info')];

    assert.deepEqual(pick(ours.body, same), pick(theirs.body, same));
    assert.equal(ours.body.EngineRootDir, engine.dataRoot);
    assert.equal(ours.body.DockerRootDir, engine.dataRoot);
  });

  test('containers are counted by their state', async () => {
    const host = { HostConfig: { NetworkMode: 'none' } };
    await engine.create(['true'], host);
    await engine.run(['sleep', '1000'], host);
    await engine.post(`/containers/${await engine.run(['sleep', '1000'], host, 'paused')}/pause`);

    const { body } = await engine.get<Fields>('/info');

    const { Containers, ContainersRunning, ContainersPaused, ContainersStopped, Images } = body;
    assert.deepEqual([Containers, ContainersRunning, ContainersPaused, ContainersStopped, Images], [3, 1, 1, 1, 1]);
    await engine.post('/containers/paused/unpause');
  });

  test('/_ping answers GET and HEAD, with a version and without', async () => {
    for (const prefix of ['', '/v1.12', '/v1.24']) {
      using api = new Api(engine.socketPath, prefix);
      const [get, head] = [await api.get('/_ping'), await api.request('HEAD', '/_ping')];
      assert.deepEqual(
        [get.status, get.raw.toString(), get.headers['content-type']],
        [200, 'OK', 'text/plain; charset=utf-8'],
      );
      assert.deepEqual([head.status, head.raw.length, head.headers['api-version']], [200, 0, NEWEST]);
    }
  });
});

function missing(names: readonly string[], fields: Fields): string[] {
  return names.filter((name) => !Object.hasOwn(fields, name));
}

function pick(fields: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(names.map((name) => [name, fields[name]]));
}

/** The fields of `theirs` that `ours` lacks or has with another type. A null in `theirs` matches anything. */
function differences(ours: unknown, theirs: unknown, place: string): string[] {
  if (theirs === null || ours === null) return [];
  if (Array.isArray(theirs) !== Array.isArray(ours) || typeof theirs !== typeof ours) return [`${place}: another type`];
  if (typeof theirs !== 'object' || Array.isArray(theirs)) return [];
  return Object.entries(theirs).flatMap(([key, value]) => {
    const isMap = ['Runtimes', 'Details'].some((name) => place.endsWith(name));
    if (isMap) return [];
    const inner = (ours as Fields)[key];
    return inner === undefined ? [`${place}.${key} is missing`] : differences(inner, value, `${place}.${key}`);
  });
}
