import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import type { Dockerd } from '@gantry/testing/dockerd.ts';
import { EnginesBesideRegistries } from '@gantry/testing/registries/engines-beside.ts';
import type { Registries } from '@gantry/testing/registries/registries.ts';
import type { TestEngine } from '@gantry/testing/test-engine.ts';

type Api = Pick<TestEngine, 'post' | 'get'>;
/** A refusal before the first line has a message alone. */
type Line = { status?: string; id?: string; error?: string; message?: string };
const refusalIn = (lines: Line[]): string => lines.at(-1)?.error ?? lines.at(-1)?.message ?? '';
type Inspect = Record<'Id' | 'RepoTags' | 'RepoDigests' | 'Config' | 'RootFS' | 'Created' | 'Author', unknown>;

const OLD = '127.0.0.1:5000';
const PROXY = '127.0.0.1:5001';
const TYPE = 'application/vnd.docker.distribution.manifest.v1+prettyjws';

const layer = (name: string): Buffer => new TarWriter().add({ name, content: Buffer.alloc(20_000, `${name} `) }).end();
const digestOf = (content: Buffer | string): string => `sha256:${createHash('sha256').update(content).digest('hex')}`;

const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });

/** Around a payload what signatures look like; nobody can tell whose they are. */
function signed(payload: string): string {
  const end = payload.lastIndexOf('\n}');
  const stated = { formatLength: end, formatTail: Buffer.from(payload.slice(end)).toString('base64url') };
  const signature = {
    header: { jwk, alg: 'ES256' },
    signature: 'AAAA',
    protected: Buffer.from(JSON.stringify(stated)).toString('base64url'),
  };
  return `${payload.slice(0, end)},\n   "signatures": [${JSON.stringify(signature)}]\n}`;
}

suite('images of schema 1', { concurrency: false }, () => {
  let beside: EnginesBesideRegistries;
  let engine: TestEngine;
  let dockerd: Dockerd;
  let registries: Registries;

  before(async () => {
    beside = await EnginesBesideRegistries.start();
    ({ engine, dockerd, registries } = beside);
    await registries.registry(5000, { isOld: true });
    await registries.proxy(5001, 5000);
  });
  after(async () => {
    await beside[Symbol.asyncDispose]();
  });

  async function pull(api: Api, name: string): Promise<Line[]> {
    const { raw } = await api.post(`/images/create?fromImage=${encodeURIComponent(name)}`);
    const text = raw.toString().trimEnd();
    return text.split('\r\n').map((line) => JSON.parse(line) as Line);
  }
  async function pulled(api: Api, name: string): Promise<unknown> {
    // Lines that depend on speed; and dockerd names layers of a known image once more.
    const left = /^(Downloading|Extracting|Verifying Checksum|Waiting|Download complete|Already exists)$/;
    const lines = (await pull(api, name)).filter(({ status = '' }) => !left.test(status));
    const { body } = await api.get<Inspect>(`/images/${name}/json`);
    const { Id, RepoTags, RepoDigests, Config, RootFS, Created, Author } = body;
    const history = (await api.get<object[]>(`/images/${name}/history`)).body;
    return { lines, Id, RepoTags, RepoDigests, Config, RootFS, Created, Author, history };
  }
  /** Makes one of schema 1 of it, as registries did for old clients, under another tag. */
  async function age(repository: string, from: string, to: string): Promise<string> {
    const { body } = await registries.request('GET', `http://${OLD}/v2/${repository}/manifests/${from}`, {
      headers: { accept: TYPE },
    });
    const answer = await registries.request('PUT', `http://${OLD}/v2/${repository}/manifests/${to}`, {
      body,
      headers: { 'content-type': TYPE },
    });
    assert.equal(answer.status, 201, answer.body.toString());
    return answer.headers['docker-content-digest']!;
  }

  test('are pulled by tag and by digest, with the ids and lines of dockerd', async () => {
    const layers = ['a', 'b', 'c'].map(layer);
    await registries.putImage(`${OLD}/v2/aged`, 'new', layers, {
      config: { Env: ['A=<b>&'], Labels: { k: 'v' } },
      fields: {
        docker_version: '20.10.24',
        author: 'me',
        container_config: { Cmd: ['last'] },
        history: [
          { created: '2024-01-01T00:00:00Z', created_by: 'layer 0' },
          { created: '2024-01-01T00:00:01Z', created_by: 'ENV <A>', empty_layer: true },
          { created: '2024-01-01T00:00:02Z', created_by: 'layer 1', author: 'me', comment: 'co' },
          { created: '2024-01-01T00:00:03Z', created_by: 'layer 2' },
        ],
      },
    });
    await registries.putImage(`${OLD}/v2/aged`, 'twice', [layer('a'), layer('a'), layer('d')], {
      fields: { docker_version: '20.10.24' },
    });
    const digest = await age('aged', 'new', 'old');
    await age('aged', 'twice', 'old-twice');

    for (const name of [`${OLD}/aged:old`, `${OLD}/aged:old`, `${OLD}/aged@${digest}`, `${OLD}/aged:old-twice`]) {
      const [ours, theirs] = [await pulled(engine, name), await pulled(dockerd.api, name)];

      assert.deepEqual(ours, theirs, name);
    }
    const { raw, status } = await engine.get(`/images/${OLD}/aged:old/get`);
    assert.equal(status, 200);
    assert.equal((await dockerd.api.post('/images/load', raw)).status, 200);
  });

  test('without a type of their own, as registries of that time sent them, are known by their fields', async () => {
    const blob = await registries.putBlob(`${OLD}/v2/untyped`, gzipSync(layer('untyped')));
    const text = signed(manifestOf([{ blob: blob.digest }]));
    await registries.faults({
      on: '.*/manifests/',
      times: 99,
      status: 200,
      headers: { 'content-type': 'application/json; charset=utf-8' },
      body: text,
    });

    const lines = await pull(engine, `${PROXY}/untyped:x`);

    await registries.faults();
    assert.match(lines.at(-1)!.status ?? '', /Downloaded newer image/, JSON.stringify(lines));
  });

  const [one, two] = ['1'.repeat(64), '2'.repeat(64)];
  const refusals: [string, string, RegExp][] = [
    ['whose parents are other ones', manifestOf([{ parent: two }, {}]), /invalid parent ID. Expected .*, got 2222/],
    ['whose base has a parent', manifestOf([{ parent: two }]), /invalid parent ID in the base layer/],
    [
      'with an id that is there again',
      manifestOf([{ id: one, parent: two }, { id: two, parent: one }, { id: one }]),
      /appears multiple times in manifest/,
    ],
    ['with an id that is none', manifestOf([{ id: 'x' }]), /image ID .?"?x"? is invalid|image ID/],
    ['with less history than layers', manifestOf([{}], 2), /length of history not equal to number of layers/],
    ['without layers', manifestOf([]), /fsLayers|no FSLayers/],
  ];
  for (const [what, payload, refusal] of refusals) {
    test(`are refused ${what}, by dockerd too`, async () => {
      const body = signed(payload);
      const headers = {
        'content-type': TYPE,
        'content-length': String(body.length),
        'docker-content-digest': digestOf(payload),
      };
      await registries.faults({ on: '.*/manifests/', times: 99, status: 200, headers, body });

      const [ours, theirs] = [await pull(engine, `${PROXY}/bad:x`), await pull(dockerd.api, `${PROXY}/bad:x`)];

      await registries.faults();
      assert.match(refusalIn(ours), refusal);
      assert.match(refusalIn(theirs), refusal);
    });
  }

  for (const [what, body, headers] of [
    ['without signatures', manifestOf([{}]), {}],
    ['that state a length beyond their end', JSON.stringify({ signatures: [{ protected: tooLong() }] }), {}],
    ['that are others than asked for', signed(manifestOf([{}])), { 'docker-content-digest': digestOf('other') }],
    ['that are no JSON', '{', {}],
    ['whose settings are none', signed(manifestOf([{ json: '[7]' }])), {}],
  ] as const) {
    test(`are refused ${what}, and nothing is left`, async () => {
      const before = readdirSync(join(engine.dataRoot, 'layers'));
      await registries.faults({
        on: '.*/manifests/',
        times: 99,
        status: 200,
        headers: { 'content-type': TYPE, ...headers },
        body,
      });

      const lines = await pull(engine, `${PROXY}/bad:x`);

      await registries.faults();
      assert.match(refusalIn(lines), /invalid manifest of schema 1|verification failed/);
      assert.deepEqual(readdirSync(join(engine.dataRoot, 'layers')), before);
      assert.deepEqual(readdirSync(join(engine.dataRoot, 'blobs/arriving')), []);
    });
  }
});

function tooLong(): string {
  return Buffer.from(JSON.stringify({ formatLength: 1e9, formatTail: '' })).toString('base64url');
}

/** The text of a manifest of these steps, the newest first; ids are made up where none are given. */
function manifestOf(
  steps: readonly { id?: string; parent?: string; blob?: string; json?: string }[],
  layers = steps.length,
): string {
  const idOf = (index: number): string => steps[index]?.id ?? String(index).padStart(64, 'a');
  const history = steps.map(({ parent, json }, index) => {
    const below = parent ?? (index + 1 < steps.length ? idOf(index + 1) : undefined);
    const settings = {
      id: idOf(index),
      ...(below !== undefined && { parent: below }),
      created: '2015-01-01T00:00:00Z',
    };
    return { v1Compatibility: json ?? JSON.stringify({ ...settings, os: 'linux', docker_version: '1.9.1' }) };
  });
  const fsLayers = Array.from({ length: layers }, (_, index) => ({ blobSum: steps[index]?.blob ?? digestOf('none') }));
  return JSON.stringify(
    { schemaVersion: 1, name: 'bad', tag: 'x', architecture: 'amd64', fsLayers, history },
    undefined,
    3,
  );
}
