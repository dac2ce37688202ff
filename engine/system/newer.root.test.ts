import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { Api } from '@gantry/testing/api.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Fields = Record<string, unknown>;

suite('system endpoints for newer clients', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ version: '1.55', flags: ['--default-address-pool=base=10.77.0.0/16,size=24'] });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function at<T = Fields>(version: string, path: string) {
    using api = new Api(engine.socketPath, version === '' ? '' : `/v${version}`);
    return await api.get<T>(path);
  }

  test('/_ping tells the builder and the state of the cluster, to GET and HEAD', async () => {
    for (const version of ['1.24', '1.55', '']) {
      using api = new Api(engine.socketPath, version === '' ? '' : `/v${version}`);
      for (const method of ['GET', 'HEAD'] as const) {
        const { headers } = await api.request(method, '/_ping');
        const names = ['api-version', 'builder-version', 'swarm', 'ostype', 'docker-experimental', 'cache-control'];
        assert.deepEqual(
          names.map((name) => headers[name]),
          ['1.55', '1', 'inactive', 'linux', 'false', 'no-cache, no-store, must-revalidate'],
        );
      }
    }
  });

  test('/version names the oldest and the newest version, again in its component', async () => {
    const { body } = await at<Fields & { Components: { Name: string; Details: Fields }[] }>('1.55', '/version');

    assert.deepEqual([body.ApiVersion, body.MinAPIVersion], ['1.55', '1.12']);
    const [component] = body.Components;
    assert.equal(component?.Name, 'Engine');
    assert.deepEqual([component.Details.ApiVersion, component.Details.MinAPIVersion], ['1.55', '1.12']);
  });

  test('/info has the features of runtimes from 1.44 on, and the address pools of the settings', async () => {
    const [old, now] = [await at('1.43', '/info'), await at('1.44', '/info')];
    const runtimesOf = (info: Fields): Fields => info.Runtimes as Record<string, Fields>;
    const runc = (info: Fields): Fields => runtimesOf(info).runc as Fields;

    assert.equal('status' in runc(old.body), false);
    const { status } = runc(now.body) as { status: Record<string, string> };
    const features = JSON.parse(status['org.opencontainers.runtime-spec.features']!) as Fields;
    assert.equal(typeof features.ociVersionMin, 'string');
    assert.deepEqual(now.body.DefaultAddressPools, [{ Base: '10.77.0.0/16', Size: 24 }]);
  });

  test('/system/df measures the kinds that are asked for', async () => {
    const keysOf = async (version: string, query: string): Promise<string[]> =>
      Object.keys((await at(version, `/system/df${query}`)).body);
    const lists = ['LayersSize', 'Images', 'Containers', 'Volumes', 'BuildCache', 'BuilderSize'];
    const usages = ['ImageUsage', 'ContainerUsage', 'VolumeUsage', 'BuildCacheUsage'];

    assert.deepEqual(await keysOf('1.51', ''), lists);
    assert.deepEqual(await keysOf('1.52', ''), [...lists, ...usages]);
    assert.deepEqual(await keysOf('1.52', '?verbose=1'), usages);
    assert.deepEqual(await keysOf('1.51', '?verbose=1'), lists);
    assert.deepEqual(await keysOf('1.42', '?type=image'), ['LayersSize', 'Images']);
    const some = await keysOf('', '?type=volume&type=build-cache');
    assert.deepEqual(some, ['Volumes', 'BuildCache', 'BuilderSize', 'VolumeUsage', 'BuildCacheUsage']);
  });

  test('the sums of /system/df are those of its items', async () => {
    const netless = { HostConfig: { NetworkMode: 'none', Binds: ['used:/v'] } };
    const write = ['sh', '-c', 'head -c 5000 /dev/zero >/file; head -c 3000 /dev/zero >/v/file; exec sleep 1000'];
    await engine.run(write, netless, 'running');
    await engine.run(['sh', '-c', 'head -c 2000 /dev/zero >/file'], { HostConfig: { NetworkMode: 'none' } }, 'ended');
    await engine.wait('ended');
    await engine.post('/volumes/create', { Name: 'unused' });
    const written = await engine.post<{ Id: string }>('/containers/running/exec', {
      Cmd: ['true'],
      AttachStdout: true,
    });
    await engine.post(`/exec/${written.body.Id}/start`, {});

    const { body } = await at<Record<string, Fields & { Items: Fields[] }>>('1.55', '/system/df?verbose=1');

    const { Items: containers, ...ofContainers } = body.ContainerUsage!;
    const { Items: volumes, ...ofVolumes } = body.VolumeUsage!;
    const { Items: images, ...ofImages } = body.ImageUsage!;
    const sizes = new Map(containers.map(({ State, SizeRw }) => [State, Number(SizeRw)]));
    const [running = 0, ended = 0] = [sizes.get('running'), sizes.get('exited')];
    assert.ok(ended >= 2000);
    assert.deepEqual(ofContainers, { ActiveCount: 1, TotalCount: 2, Reclaimable: ended, TotalSize: running + ended });
    const used = volumes.find(({ Name }) => Name === 'used')!.UsageData as { Size: number };
    assert.deepEqual(ofVolumes, { ActiveCount: 1, TotalCount: 2, Reclaimable: 0, TotalSize: used.Size });
    assert.deepEqual(ofImages, { ActiveCount: 1, TotalCount: 1, Reclaimable: 0, TotalSize: images[0]!.Size });
  });
});
