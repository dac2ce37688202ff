import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { zstdCompressSync } from 'node:zlib';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import type { Dockerd } from '@gantry/testing/dockerd.ts';
import { EnginesBesideRegistries } from '@gantry/testing/registries/engines-beside.ts';
import type { Registries } from '@gantry/testing/registries/registries.ts';
import type { TestEngine } from '@gantry/testing/test-engine.ts';

type Line = { status?: string; id?: string; error?: string; aux?: { Tag: string; Digest: string; Size: number } };
type Inspect = { Id: string; RepoDigests: string[] };

const ALICE = { username: 'alice', password: 'secret-of-alice' };
const layer = (name: string, bytes = 2000): Buffer =>
  new TarWriter().add({ name, content: Buffer.alloc(bytes, `${name} `) }).end();

suite('push', { concurrency: false }, () => {
  let beside: EnginesBesideRegistries;
  let engine: TestEngine;
  let dockerd: Dockerd;
  let registries: Registries;

  before(async () => {
    beside = await EnginesBesideRegistries.start();
    ({ engine, dockerd, registries } = beside);
    // One for each, so that neither finds what the other one has pushed.
    await registries.registry(5000);
    await registries.registry(5010);
    await registries.registry(5002, { users: { alice: ALICE.password } });
    await registries.proxy(5001, 5000);
    await registries.proxy(5003, 5000, { user: 'alice', password: ALICE.password });
  });
  after(async () => {
    await beside[Symbol.asyncDispose]();
  });

  async function push(
    path: string,
    { auth = {}, of = engine }: { auth?: object; of?: Pick<TestEngine, 'post'> } = {},
  ): Promise<{ status: number; lines: Line[]; text: string }> {
    const headers = { 'X-Registry-Auth': Buffer.from(JSON.stringify(auth)).toString('base64') };
    const answer = await of.post(`/images/${path}`, undefined, { headers });
    const text = answer.raw.toString();
    const lines =
      answer.status === 200
        ? text
            .trimEnd()
            .split('\r\n')
            .map((line) => JSON.parse(line) as Line)
        : [];
    return { status: answer.status, lines, text };
  }

  const errorIn = ({ lines }: { lines: Line[] }): string | undefined => lines.at(-1)?.error;
  async function load(
    api: Pick<TestEngine, 'post'>,
    layers: readonly Buffer[],
    tags: readonly string[],
  ): Promise<void> {
    const answer = await api.post('/images/load', imageArchive(layers, tags));
    assert.equal(answer.status, 200, answer.raw.toString());
  }
  async function removeAll(): Promise<void> {
    const { body } = await engine.get<{ Id: string }[]>('/images/json?all=1');
    for (const { Id } of body) await engine.delete(`/images/${Id}?force=1`);
    assert.deepEqual(readdirSync(join(engine.dataRoot, 'blobs/arriving')), []);
  }

  test('the lines and events are those of dockerd, also where layers are there already or can be mounted', async () => {
    const layers = [layer('a'), layer('b', 300_000), layer('c', 10)];
    const [ours, theirs] = ['127.0.0.1:5000', '127.0.0.1:5010'];
    for (const [api, registry] of [
      [engine, ours],
      [dockerd.api, theirs],
    ] as const) {
      await load(api, layers, [
        `${registry}/a/b:1`,
        `${registry}/a/b:2`,
        `${registry}/c:1`,
        `127.0.0.1:5002/d:1`,
        '127.0.0.1:5999/e:1',
      ]);
    }
    const cases: [string, object?][] = [
      ['R/a/b/push?tag=1'],
      ['R/a/b/push?tag=1'],
      ['R/a/b:1/push'],
      ['R/a/b/push'],
      ['R/c/push?tag=1'],
      ['R/c/push?tag=none'],
      ['R/nothing/push'],
      [`R/a/b@sha256:${'0'.repeat(64)}/push`],
      ['127.0.0.1:5002/d/push?tag=1'],
      ['127.0.0.1:5002/d/push?tag=1', { username: 'alice', password: 'wrong-password' }],
      ['127.0.0.1:5999/e/push?tag=1'],
    ];
    for (const [path, auth] of cases) {
      const mine = await push(path.replace('R', ours), { auth });
      const other = await push(path.replace('R', theirs), { auth, of: dockerd.api });

      assert.equal(mine.status, other.status, path);
      assert.deepEqual(comparable(mine.lines), comparable(other.lines), path);
    }
    assert.deepEqual(await pushEvents(engine), await pushEvents(dockerd.api));
    await removeAll();
  });

  test('a pushed image is the same when it is pulled, here and by dockerd', async () => {
    const name = '127.0.0.1:5000/round/trip:1';
    await load(engine, [layer('x'), layer('y', 1_000_000), layer('x')], [name]);
    const { body: before } = await engine.get<Inspect>(`/images/${name}/json`);

    const pushed = await push(`${name}/push`);

    const { aux } = pushed.lines.at(-1)!;
    assert.ok(aux, pushed.text);
    const { body: named } = await engine.get<Inspect>(`/images/${name}/json`);
    assert.deepEqual(named.RepoDigests, [`127.0.0.1:5000/round/trip@${aux.Digest}`]);
    await removeAll();
    for (const api of [engine, dockerd.api]) {
      await api.post(`/images/create?fromImage=${name}`);
      assert.equal((await api.get<Inspect>(`/images/${name}/json`)).body.Id, before.Id);
    }
    // Pushed again after the pull, elsewhere: the same manifest, to the byte.
    await engine.post(`/images/${name}/tag?repo=127.0.0.1:5000/round/again&tag=1`);
    const again = await push('127.0.0.1:5000/round/again/push?tag=1');
    assert.equal(again.lines.at(-1)!.aux!.Digest, aux.Digest);
    assert.ok(again.lines.some(({ status }) => status === 'Mounted from round/trip'));
    await removeAll();
  });

  test('a layer of another compression is sent as gzip', async () => {
    const name = '127.0.0.1:5000/zstd:1';
    const plain = layer('z', 100_000);
    const tar = new TarWriter();
    const config = JSON.stringify({
      architecture: process.arch === 'x64' ? 'amd64' : process.arch,
      os: 'linux',
      rootfs: { type: 'layers', diff_ids: [`sha256:${createHash('sha256').update(plain).digest('hex')}`] },
    });
    tar.add({ name: 'layer', content: zstdCompressSync(plain) });
    tar.add({ name: 'config', content: config });
    tar.add({
      name: 'manifest.json',
      content: JSON.stringify([{ Config: 'config', RepoTags: [name], Layers: ['layer'] }]),
    });
    await engine.post('/images/load', tar.end());

    assert.equal(errorIn(await push(`${name}/push`)), undefined);

    const pulled = await dockerd.api.post(`/images/create?fromImage=${name}`);
    assert.match(pulled.raw.toString(), /Downloaded newer image/);
    await removeAll();
  });

  const faults: [string, Parameters<Registries['faults']>[0], RegExp | undefined][] = [
    ['an upload fails', { on: '^PATCH ', times: 1, status: 500 }, undefined],
    ['the registry is busy', { on: '^POST ', times: 2, status: 503, headers: { 'Retry-After': '0' } }, undefined],
    [
      'the manifest has to be sent twice',
      { on: '^PUT .*/manifests/', times: 1, status: 503, headers: { 'Retry-After': '0' } },
      undefined,
    ],
    [
      'it may not be pushed',
      {
        on: '^POST ',
        times: 99,
        status: 403,
        body: '{"errors":[{"code":"DENIED","message":"requested access to the resource is denied"}]}',
      },
      /^denied: requested access to the resource is denied$/,
    ],
  ];
  for (const [why, fault, refusal] of faults) {
    test(`${why}: the push ${refusal === undefined ? 'goes on' : 'fails and says why'}`, async () => {
      const name = `127.0.0.1:5001/faults/${why.replaceAll(' ', '-')}:1`;
      await load(engine, [layer(why), layer('large', 500_000)], [name]);
      await registries.faults(fault);

      const answer = await push(`${name}/push`);

      await registries.faults();
      if (refusal === undefined) assert.equal(errorIn(answer), undefined, answer.text);
      else assert.match(errorIn(answer) ?? '', refusal);
      await removeAll();
    });
  }

  test('a client that leaves ends the push, and nothing is left', async () => {
    const name = '127.0.0.1:5001/left/push:1';
    await load(engine, [layer('left', 500_000)], [name]);
    await registries.seen();
    await registries.faults({ on: '^PATCH ', times: 1, hold: true });
    const headers = { 'X-Registry-Auth': Buffer.from('{}').toString('base64') };
    const stream = await engine.stream('POST', `/images/${name}/push`, { headers });
    const methods: string[] = [];
    while (!methods.includes('PATCH')) methods.push(...(await registries.seen()).map(({ method }) => method));

    stream.on('error', () => undefined).destroy();

    const arriving = join(engine.dataRoot, 'blobs/arriving');
    const deadline = Date.now() + 60_000;
    while (readdirSync(arriving).length > 0 && Date.now() < deadline) await engine.get('/_ping');
    assert.deepEqual(readdirSync(arriving), []);
    await registries.release();
    await registries.faults();
    assert.equal(errorIn(await push(`${name}/push`)), undefined);
    await removeAll();
  });

  const temporary = [
    {
      status: 503,
      body: '{"errors":[{"code":"UNAVAILABLE","message":"no token at this time"}]}',
      told: /: no token at/,
    },
    { status: 500, body: 'the database is on fire', told: /500 Internal Server Error: the database is on fire$/ },
    {
      status: 429,
      body: '{"errors":[{"code":"TOOMANYREQUESTS","message":"out of tokens"}]}',
      told: /: out of tokens$/,
    },
  ];
  for (const { status, body, told } of temporary) {
    test(`a token server that answers ${status} is asked again, and its last words are told`, async () => {
      const name = `127.0.0.1:5003/token/after-${status}`;
      await load(engine, [layer(`after-${status}`)], [`${name}:1`]);
      const fault = { on: ' /token', status, body, headers: { 'retry-after': '0' } };

      await registries.faults({ ...fault, times: 2 });
      const passed = await push(`${name}/push?tag=1`, { auth: ALICE });
      await registries.seen();
      await registries.faults({ ...fault, times: 1000 });
      const failed = await push(`${name}/push?tag=1`, { auth: ALICE });

      const asked = (await registries.seen()).filter(({ path }) => path.startsWith('/token'));
      await registries.faults();
      assert.equal(errorIn(passed), undefined);
      assert.ok(passed.lines.some((line) => line.status === 'Retrying in 0 seconds'));
      assert.match(errorIn(failed) ?? '', told);
      assert.equal(asked.length, 5);
      await removeAll();
    });
  }

  test('a token server that refuses is asked once', async () => {
    const name = '127.0.0.1:5003/token/refused';
    await load(engine, [layer('refused')], [`${name}:1`]);
    await registries.faults({ on: ' /token', times: 1000, status: 403, body: '{"details":"not you"}' });
    await registries.seen();

    const { lines } = await push(`${name}/push?tag=1`, { auth: ALICE });

    const asked = (await registries.seen()).filter(({ path }) => path.startsWith('/token'));
    await registries.faults();
    assert.equal(lines.at(-1)?.error, 'denied: not you');
    assert.equal(asked.length, 1);
    await removeAll();
  });

  test('tokens are asked for pull and push, and for the repository that a layer is mounted from', async () => {
    await load(engine, [layer('token')], ['127.0.0.1:5003/token/a:1', '127.0.0.1:5003/token/b:1']);
    await registries.seen();

    assert.match(
      errorIn(await push('127.0.0.1:5003/token/a/push?tag=1')) ?? '',
      /^unauthorized: incorrect username or password$/,
    );
    assert.equal(errorIn(await push('127.0.0.1:5003/token/a/push?tag=1', { auth: ALICE })), undefined);
    const second = await push('127.0.0.1:5003/token/b/push?tag=1', { auth: ALICE });

    assert.ok(
      second.lines.some(({ status }) => status === 'Mounted from token/a'),
      second.text,
    );
    const granted = new Set((await registries.seen()).map(({ authorization }) => authorization));
    assert.ok(granted.has('Bearer granted:repository:token/a:pull,push'));
    assert.ok(granted.has('Bearer granted:repository:token/b:pull,push repository:token/a:pull'));
    assert.doesNotMatch(engine.log, /secret-of-alice/);
    await removeAll();
  });
});

/** Without what depends on speed, and without digests: two programs compress differently. */
function comparable(lines: readonly Line[]): unknown {
  const text = JSON.stringify(lines.filter(({ status = '' }) => !/^(Pushing|Waiting)$/.test(status)))
    .replaceAll(/sha256:[0-9a-f]{64}/g, 'sha256:…')
    .replaceAll(/size: \d+|"Size":\d+/g, (size) => size.replace(/\d+/, '0'))
    .replaceAll('127.0.0.1:5010', '127.0.0.1:5000');
  const kept = JSON.parse(text) as Line[];
  // Layers come in any order, and may be mounted from any repository that has them.
  const ofLayers = kept.filter(({ id, status }) => id !== undefined && status !== 'Preparing');
  const isOfLayer = new Set<Line>(ofLayers);
  const told = ofLayers.map(({ id, status }) => `${id} ${status}`);
  return { told: new Set(told), others: kept.filter((line) => !isOfLayer.has(line)) };
}

async function pushEvents(api: Pick<TestEngine, 'get'>): Promise<unknown[]> {
  const filters = encodeURIComponent(JSON.stringify({ type: ['image'], event: ['push'] }));
  const until = Math.floor(Date.now() / 1000) + 1;
  const { raw } = await api.get(`/events?since=1&until=${until}&filters=${filters}`);
  const lines = raw.toString().replaceAll('127.0.0.1:5010', '127.0.0.1:5000').trim().split('\n');
  return lines.map((line) => {
    const { Action, Actor, id } = JSON.parse(line) as { Action: string; Actor: unknown; id: string };
    return { Action, Actor, id };
  });
}
