import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { Api } from '@gantry/testing/api.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { VolumeList, VolumeWire } from './schema.ts';

const LABELS = { 'com.docker.volume.anonymous': '' };

suite('volumes of newer clients', { concurrency: false }, () => {
  let engine: TestEngine;
  let older: Api;
  before(async () => {
    engine = await TestEngine.start({ version: '1.51' });
    older = new Api(engine.socketPath, '/v1.41');
  });
  after(async () => {
    older[Symbol.dispose]();
    await engine[Symbol.asyncDispose]();
  });

  const create = async (body?: object): Promise<VolumeWire> =>
    (await engine.post<VolumeWire>('/volumes/create', body)).body;
  const prune = async (api: Api, all?: string): Promise<string[]> => {
    const filters = encodeURIComponent(JSON.stringify(all === undefined ? {} : { all: [all] }));
    return (
      await api.post<{ VolumesDeleted: string[] }>(`/volumes/prune?filters=${filters}`)
    ).body.VolumesDeleted.toSorted();
  };

  test('anonymous volumes have a label, which older clients do not see', async () => {
    const volumes = [await create(), await create({ Labels: { a: 'b' } }), await create({ Name: 'named' })];
    await engine.create(['true'], { Volumes: { '/v': {} }, HostConfig: { Binds: ['bound:/b'] } }, 'user');
    const { body } = await engine.get<{ Mounts: { Name: string; Destination: string }[] }>('/containers/user/json');
    const mounted = body.Mounts.toSorted((a, b) => (a.Destination < b.Destination ? -1 : 1));
    for (const { Name } of mounted) volumes.push((await engine.get<VolumeWire>(`/volumes/${Name}`)).body);

    const shown = await Promise.all(
      volumes.map(async ({ Name }) => (await older.get<VolumeWire>(`/volumes/${Name}`)).body.Labels),
    );
    const listed = (await older.get<VolumeList>('/volumes')).body.Volumes.map(({ Labels }) => Labels);

    assert.deepEqual(
      volumes.map(({ Labels }) => Labels),
      [LABELS, { ...LABELS, a: 'b' }, null, null, LABELS],
    );
    assert.deepEqual(shown, [null, { a: 'b' }, null, null, null]);
    assert.deepEqual(
      listed.filter((labels) => labels !== null),
      [{ a: 'b' }],
    );
    await engine.delete('/containers/user?v=1');
    await prune(engine, '1');
  });

  test('a prune takes anonymous volumes, with all=1 the others too, and for older clients always', async () => {
    const deleted: string[][] = [];
    const names: string[] = [];
    for (const [api, all] of [[engine], [engine, '1'], [older]] as const) {
      names.push((await create()).Name);
      await create({ Name: 'named' });
      deleted.push(await prune(api, all));
    }

    assert.deepEqual(deleted, [[names[0]], [names[1]!, 'named'].toSorted(), [names[2]!, 'named'].toSorted()]);
  });

  test('a cluster volume is refused by its name, and makes nothing', async () => {
    const answers = [
      await engine.post<{ message: string }>('/volumes/create', { Name: 'csi', ClusterVolumeSpec: {} }),
      await engine.request('PUT', '/volumes/csi?version=1', {}),
      await engine.get('/volumes/csi'),
      await engine.post('/volumes/create', { Name: 'plain', ClusterVolumeSpec: null }),
    ];
    await engine.post('/swarm/init', { ListenAddr: '127.0.0.1', AdvertiseAddr: '127.0.0.1' });
    const ofManager = await engine.post<{ message: string }>('/volumes/create', { ClusterVolumeSpec: {} });
    await engine.post('/swarm/leave?force=1');

    assert.deepEqual(
      answers.map(({ status }) => status),
      [503, 503, 404, 201],
    );
    assert.equal(ofManager.status, 501);
    assert.match(ofManager.body.message, /ClusterVolumeSpec/);
  });
});
