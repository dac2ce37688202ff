import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Api } from '@gantry/testing/api.ts';
import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxLayer, imageArchive } from '@gantry/testing/busybox-image.ts';
import type { Dockerd } from '@gantry/testing/dockerd.ts';
import { EnginesBesideRegistries } from '@gantry/testing/registries/engines-beside.ts';
import { putMultiPlatform } from '@gantry/testing/registries/multi-platform.ts';
import type { Registries } from '@gantry/testing/registries/registries.ts';
import type { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf } from './build/compared.ts';

type Removed = ({ Untagged: string } | { Deleted: string })[] | { message: string };

const PLAIN = '127.0.0.1:5000';
const PROXY = '127.0.0.1:5001';
const ANY_MANIFEST = {
  Accept: ['index.v1', 'manifest.v1'].map((kind) => `application/vnd.oci.image.${kind}+json`).join(),
};
const HOLD = { times: 1, hold: true } as const;

const layer = (name: string, bytes = 200_000): Buffer =>
  new TarWriter().add({ name, content: Buffer.alloc(bytes, `${name} `) }).end();

suite('an image that is removed while something uses it', { concurrency: false }, () => {
  let beside: EnginesBesideRegistries;
  let engine: TestEngine;
  let dockerd: Dockerd;
  let registries: Registries;
  const apis = (): [string, Api][] => [
    ['gantry', engine],
    ['dockerd', dockerd.api],
  ];

  before(async () => {
    beside = await EnginesBesideRegistries.start();
    ({ engine, dockerd, registries } = beside);
    await registries.registry(5000);
    await registries.proxy(5001, 5000);
  });
  after(async () => {
    await beside[Symbol.asyncDispose]();
  });

  async function load(api: Api, layers: readonly Buffer[], names: readonly string[]): Promise<void> {
    const { status, raw } = await api.post('/images/load?quiet=1', imageArchive([busyboxLayer(), ...layers], names));
    assert.equal(status, 200, raw.toString());
  }
  async function remove(api: Api, name: string, query = ''): Promise<{ status: number; said: Removed }> {
    const { status, body } = await api.delete<Removed>(`/images/${name}${query}`);
    return { status, said: body };
  }
  const isThere = async (api: Api, name: string): Promise<boolean> =>
    (await api.get(`/images/${name}/json`)).status === 200;
  async function whenAsked(path: RegExp): Promise<void> {
    while (!(await registries.seen()).some((seen) => path.test(seen.path))) await setTimeout(20);
  }
  /** Removes all images, whatever uses them. */
  async function removeImages(): Promise<void> {
    const { body } = await engine.get<{ Id: string }[]>('/images/json?all=1');
    for (const { Id } of body) assert.equal((await remove(engine, Id, '?force=1')).status, 200);
    assert.deepEqual((await engine.get('/images/json?all=1')).body, []);
  }
  async function assertNothingLeft(): Promise<void> {
    for (const { Id } of (await engine.get<{ Id: string }[]>('/images/json?all=1')).body) {
      await engine.delete(`/images/${Id}?force=1`);
    }
    const left = (): string[] => [
      ...['blobs/sha256', 'blobs/skeletons', 'blobs/arriving'].flatMap((name) =>
        readdirSync(join(engine.dataRoot, name)),
      ),
      ...readdirSync(join(engine.dataRoot, 'layers')).filter((name) => !/^(\.trash$|common|init$)/.test(name)),
    ];
    const deadline = Date.now() + 60_000;
    while (left().length > 0 && Date.now() < deadline) await setTimeout(20);
    assert.deepEqual(left(), []);
    assert.deepEqual((await engine.get('/containers/json?all=1')).body, []);
  }

  test('by a pull that has its layers already: the pull gives a whole image', async () => {
    const layers = [busyboxLayer(), layer('shared'), layer('new')];
    const put = await registries.putImage(`${PLAIN}/v2/pulled`, 'x', layers);
    for (const [name, api] of apis()) {
      await load(api, [layer('shared')], ['old:1']);
      await registries.seen();
      await registries.faults({ on: `GET .*${put.layers[2]!.digest}`, ...HOLD });
      const pulling = api.post(`/images/create?fromImage=${PROXY}/pulled:x`);
      await whenAsked(new RegExp(put.layers[2]!.digest));

      assert.equal((await remove(api, 'old:1')).status, 200, name);
      assert.equal((await remove(api, `${PROXY}/pulled:x`)).status, 404, name);
      await registries.release();

      assert.match((await pulling).raw.toString(), /Downloaded newer image/, name);
      const { status, raw } = await api.get(`/images/${PROXY}/pulled:x/get`);
      assert.equal(status, 200, name);
      assert.equal([...tarList(raw).keys()].filter((entry) => entry.endsWith('layer.tar')).length, 3, name);
    }
    await assertNothingLeft();
  });

  test('by a push of two tags: both arrive whole (dockerd loses the second one)', async () => {
    await load(engine, [layer('a'), layer('b')], [`${PROXY}/pushed:1`]);
    await load(engine, [layer('a'), layer('c')], [`${PROXY}/pushed:2`]);
    const idOf = async (name: string): Promise<string> =>
      (await engine.get<{ Id: string }>(`/images/${name}/json`)).body.Id;
    const ids = [await idOf(`${PROXY}/pushed:1`), await idOf(`${PROXY}/pushed:2`)];
    await registries.seen();
    await registries.faults({ on: '(PATCH|PUT) .*/blobs/uploads/', ...HOLD });
    const pushing = engine.post(`/images/${PROXY}/pushed/push`, undefined, { headers: { 'X-Registry-Auth': 'e30=' } });
    await whenAsked(/blobs\/uploads\/[^?]/);

    const removed = [await remove(engine, `${PROXY}/pushed:1`), await remove(engine, `${PROXY}/pushed:2`)];
    await registries.release();

    assert.deepEqual(
      removed.map(({ status }) => status),
      [200, 200],
    );
    assert.doesNotMatch((await pushing).raw.toString(), /"error"/);
    for (const tag of [1, 2]) {
      const { raw } = await engine.post(`/images/create?fromImage=${PLAIN}/pushed:${tag}`);
      assert.match(raw.toString(), /Downloaded newer/);
    }
    assert.deepEqual([await idOf(`${PLAIN}/pushed:1`), await idOf(`${PLAIN}/pushed:2`)], ids);
    await assertNothingLeft();
  });

  test('by a push of an index: all platforms arrive', async () => {
    const index = await putMultiPlatform(registries, `${PLAIN}/v2/index`, '1', { isAttested: false });
    for (const { platform } of index.images) {
      const name = `${platform.os}/${platform.architecture}`;
      await engine.post(`/images/create?fromImage=${PLAIN}/index:1&platform=${name}`);
    }
    await engine.post(`/images/${PLAIN}/index:1/tag?repo=${PROXY}/moved&tag=1`);
    await registries.seen();
    await registries.faults({ on: '(PATCH|PUT|POST) .*/blobs/uploads/', ...HOLD });
    const headers = { 'X-Registry-Auth': 'e30=' };
    const pushing = engine.post(`/images/${PROXY}/moved/push?tag=1`, undefined, { headers });
    await whenAsked(/moved\/blobs\/uploads\//);

    await removeImages();
    await registries.release();

    assert.match((await pushing).raw.toString(), new RegExp(`1: digest: ${index.digest}`));
    const url = `http://${PLAIN}/v2/moved/manifests`;
    for (const { digest } of [index, ...index.images]) {
      assert.equal((await registries.request('GET', `${url}/${digest}`, { headers: ANY_MANIFEST })).status, 200);
    }
    await assertNothingLeft();
  });

  test('by a save: the archive is whole', async () => {
    await load(engine, [layer('large', 30_000_000)], ['saved:1']);
    await load(engine, [layer('second', 3_000_000)], ['saved:2']);
    const whole = (await engine.get('/images/get?names=saved:1&names=saved:2')).raw;
    const stream = await engine.stream('GET', '/images/get?names=saved:1&names=saved:2');
    const chunks: Buffer[] = [];
    let removed: { status: number }[] | undefined;
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      removed ??= [await remove(engine, 'saved:1'), await remove(engine, 'saved:2')];
    }

    assert.deepEqual(
      removed!.map(({ status }) => status),
      [200, 200],
    );
    assert.ok(Buffer.concat(chunks).equals(whole));
    assert.equal((await engine.post('/images/load?quiet=1', whole)).status, 200);
    await assertNothingLeft();
  });

  test('by a build: its running step keeps it, as with dockerd, and the build goes on without its name', async () => {
    const results = [];
    for (const [, api] of apis()) {
      await load(api, [layer('base')], ['base:1']);
      const context = contextOf({
        Dockerfile: 'FROM base:1\nRUN until [ -e /go ]; do sleep 0.1; done\nRUN ls /base\n',
      });
      const building = build(api, 'networkmode=none&t=built:1', context);
      let running: { Id: string }[] = [];
      while (running.length === 0) running = (await api.get<{ Id: string }[]>('/containers/json')).body;
      const id = (await api.get<{ Id: string }>('/images/base:1/json')).body.Id;

      const byId = await remove(api, id);
      const forced = await remove(api, id, '?force=1');
      const byName = await remove(api, 'base:1');
      const byNameForced = await remove(api, 'base:1', '?force=1');
      const go = new TarWriter().add({ name: 'go', content: '' }).end();
      assert.equal(
        (await api.request('PUT', `/containers/${running[0]!.Id}/archive?path=/`, { body: go })).status,
        200,
      );
      const { lines } = await building;

      const short = (text: unknown): unknown =>
        JSON.parse(
          JSON.stringify(text)
            .replaceAll(running[0]!.Id.slice(0, 12), '<container>')
            .replaceAll(id.slice(7, 19), '<image>'),
        );
      results.push(short({ byId, forced, byName, byNameForced, error: lines.find(({ error }) => error) }));
      assert.equal(await isThere(api, 'built:1'), true);
      for (const name of ['built:1', id]) await remove(api, name, '?force=1');
    }
    assert.deepEqual(results[0], results[1]);
    await assertNothingLeft();
  });

  test('by a build between two of its steps: it says so, or goes on, and leaves nothing', async () => {
    for (let round = 0; round < 8; round += 1) {
      await load(engine, [layer('base')], ['base:1']);
      const copies = Array.from({ length: 6 }, (_, index) => `COPY f${index} /${round}/`).join('\n');
      const files = Object.fromEntries(Array.from({ length: 6 }, (_, index) => [`f${index}`, `${index}\n`]));
      const context = contextOf({ Dockerfile: `FROM base:1\n${copies}\n`, ...files });
      const building = build(engine, 'nocache=1&t=built:1', context);
      const end = new AbortController();
      building.finally(() => end.abort()).catch(() => undefined);
      while (!end.signal.aborted) {
        const { body } = await engine.get<{ Id: string }[]>('/images/json?all=1');
        for (const { Id } of body.toReversed()) await engine.delete(`/images/${Id}?force=1`);
      }
      const { lines, id } = await building;

      const error = lines.find((line) => line.error !== undefined)?.error;
      if (id === undefined) assert.match(error ?? '', /No such image|does not exist|dial tcp/);
      await assertNothingLeft();
    }
  });

  test('by the creation of a container: there is a container that starts, or none', async () => {
    const outcomes = new Set<number>();
    for (let round = 0; round < 15; round += 1) {
      await load(engine, [layer('created')], ['created:1']);
      const create = engine.post<{ Id: string }>('/containers/create', {
        Image: 'created:1',
        Cmd: ['true'],
        HostConfig: { NetworkMode: 'none' },
      });
      const removing = remove(engine, 'created:1', '?force=1');
      const { status, body } = await create;
      await removing;

      outcomes.add(status);
      assert.ok(status === 201 || status === 404, `${status} ${JSON.stringify(body)}`);
      if (status !== 201) continue;
      assert.equal((await engine.post(`/containers/${body.Id}/start`)).status, 204);
      assert.equal(await engine.wait(body.Id), 0);
      assert.equal((await engine.delete(`/containers/${body.Id}`)).status, 204);
    }
    assert.ok(outcomes.size > 0);
    await assertNothingLeft();
  });
});
