import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import type { Dockerd } from '@gantry/testing/dockerd.ts';
import { EnginesBesideRegistries } from '@gantry/testing/registries/engines-beside.ts';
import type { Registries } from '@gantry/testing/registries/registries.ts';
import type { TestEngine } from '@gantry/testing/test-engine.ts';

type Line = {
  status?: string;
  id?: string;
  progressDetail?: object;
  error?: string;
  errorDetail?: { message: string };
};
type Inspect = { Id: string; RepoTags: string[]; RepoDigests: string[]; RootFS: { Layers: string[] } };

const PLAIN = '127.0.0.1:5000';
const PROXY = '127.0.0.1:5001';
const WITH_NAMES = '127.0.0.1:5002';
const WITH_TOKENS = '127.0.0.1:5003';
const ALICE = { username: 'alice', password: 'secret-of-alice' };

const layer = (name: string, bytes = 2000): Buffer =>
  new TarWriter().add({ name, content: Buffer.alloc(bytes, `${name} `) }).end();
const noise = (name: string, bytes: number): Buffer => {
  const content = Buffer.alloc(bytes);
  let state = 12_345;
  for (let at = 0; at < bytes; at += 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    content[at] = state >> 16;
  }
  return new TarWriter().add({ name, content }).end();
};

suite('pull', { concurrency: false }, () => {
  let beside: EnginesBesideRegistries;
  let engine: TestEngine;
  let dockerd: Dockerd;
  let registries: Registries;

  before(async () => {
    beside = await EnginesBesideRegistries.start();
    ({ engine, dockerd, registries } = beside);
    await registries.registry(5000);
    await registries.registry(5002, { users: { alice: ALICE.password } });
    await registries.proxy(5001, 5000);
    await registries.proxy(5003, 5000, { user: 'alice', password: ALICE.password });
  });
  after(async () => {
    await beside[Symbol.asyncDispose]();
  });

  const authHeader = (auth: object): Record<string, string> => ({
    'X-Registry-Auth': Buffer.from(JSON.stringify(auth)).toString('base64'),
  });

  async function pull(
    name: string,
    { tag, auth, of = engine }: { tag?: string; auth?: object; of?: Pick<TestEngine, 'post'> } = {},
  ): Promise<{ status: number; lines: Line[]; text: string }> {
    const query = `fromImage=${encodeURIComponent(name)}${tag === undefined ? '' : `&tag=${encodeURIComponent(tag)}`}`;
    const answer = await of.post(`/images/create?${query}`, undefined, { headers: auth ? authHeader(auth) : {} });
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
  const inspect = async (name: string): Promise<Inspect> => (await engine.get<Inspect>(`/images/${name}/json`)).body;
  /** Nothing of an image, a layer or a download is left. */
  async function assertNothingLeft(): Promise<void> {
    const { body } = await engine.get<{ Id: string }[]>('/images/json?all=1');
    for (const { Id } of body) await engine.delete(`/images/${Id}?force=1`);
    const left = (): string[] => [
      ...readdirSync(join(engine.dataRoot, 'blobs/sha256')),
      ...readdirSync(join(engine.dataRoot, 'blobs/skeletons')),
      ...readdirSync(join(engine.dataRoot, 'blobs/arriving')),
      ...readdirSync(join(engine.dataRoot, 'layers')).filter((name) => !/^(\.trash$|common)/.test(name)),
    ];
    // Partial downloads of a client are cleared away after it has gone.
    const deadline = Date.now() + 60_000;
    while (left().length > 0 && Date.now() < deadline) await engine.get('/_ping');
    assert.deepEqual(left(), []);
  }

  test('the lines, statuses and events are those of dockerd', async () => {
    const put = await registries.putImage(
      `${PLAIN}/v2/lines/a`,
      '1',
      ['a', 'b', 'c', 'd'].map((name) => layer(name)),
    );
    await registries.putImage(
      `${PLAIN}/v2/lines/a`,
      '2',
      ['a', 'e'].map((name) => layer(name)),
      { config: { Labels: { k: 'v' } } },
    );
    const name = `${PLAIN}/lines/a`;
    const cases: [string, string?, object?][] = [
      [name, '1'],
      [name, '1'],
      [`${name}:2`],
      [name],
      [`${name}@${put.digest}`],
      [name, put.digest],
      [`${name}:1`, '2'],
      [name, 'none'],
      [name, 'a/b'],
      [`${name}@sha256:${'0'.repeat(64)}`],
      [`${PLAIN}/nothing`],
      [`${PLAIN}/nothing`, '1'],
      ['UPPER'],
      ['127.0.0.1:5999/x', '1'],
      [`${WITH_NAMES}/x`, '1'],
      [`${WITH_NAMES}/x`, '1', { username: 'alice', password: 'wrong-password' }],
      [`${WITH_NAMES}/x`, '1', ALICE],
    ];
    for (const [from, tag, auth] of cases) {
      const [ours, theirs] = [await pull(from, { tag, auth }), await pull(from, { tag, auth, of: dockerd.api })];

      const what = `${from} ${tag ?? ''}`;
      assert.equal(ours.status, theirs.status, what);
      if (ours.status === 200) assert.deepEqual(comparable(ours.lines), comparable(theirs.lines), what);
      else assert.deepEqual(JSON.parse(ours.text), JSON.parse(theirs.text), what);
      assert.deepEqual(idsOf('Download complete', ours.lines), idsOf('Pull complete', ours.lines));
    }
    const [ours, theirs] = await Promise.all([pullEvents(engine), pullEvents(dockerd.api)]);
    assert.deepEqual(ours, theirs);
    const [{ RepoTags, RepoDigests }, { body }] = [
      await inspect(`${name}:1`),
      await dockerd.api.get<Inspect>(`/images/${name}:1/json`),
    ];
    assert.deepEqual([RepoTags, RepoDigests], [body.RepoTags, body.RepoDigests]);
    await assertNothingLeft();
  });

  test('the image of the host is taken from an index in an index; circles and depth are refused', async () => {
    const image = await registries.putImage(`${PLAIN}/v2/index`, 'host', [layer('host')]);
    const other = await registries.putImage(`${PLAIN}/v2/index`, 'other', [layer('other')]);
    const type = 'application/vnd.oci.image.index.v1+json';
    const index = async (tag: string, ...manifests: object[]) =>
      await registries.putManifest(`${PLAIN}/v2/index`, tag, { schemaVersion: 2, mediaType: type, manifests }, type);
    const described = (of: { digest: string; size: number; mediaType: string }, architecture?: string): object => ({
      mediaType: of.mediaType,
      digest: of.digest,
      size: of.size,
      ...(architecture && { platform: { os: 'linux', architecture } }),
    });
    const host = process.arch === 'x64' ? 'amd64' : process.arch;
    const inner = await index('inner', described(other, 'mips64le'), described(image, host));
    const outer = await index('outer', described(inner));
    let deep = outer;
    for (let depth = 0; depth < 4; depth += 1) deep = await index(`deep-${depth}`, described(deep));
    await index('foreign', described(other, 'mips64le'));

    assert.equal(errorIn(await pull(`${PLAIN}/index:outer`)), undefined);
    const { Id, RepoDigests } = await inspect(`${PLAIN}/index:outer`);
    assert.equal(Id, image.id);
    assert.deepEqual(RepoDigests, [`${PLAIN}/index@${outer.digest}`]);
    assert.match(errorIn(await pull(`${PLAIN}/index:deep-3`)) ?? '', /nested deeper/);
    assert.match(errorIn(await pull(`${PLAIN}/index:foreign`)) ?? '', /no matching manifest for linux/);
    await assertNothingLeft();
  });

  const faults: [string, Parameters<Registries['faults']>[0], RegExp | undefined][] = [
    ['a layer is cut', { on: 'GET .*/blobs/LAYER', times: 2, cutAfter: 100_000 }, undefined],
    ['a layer ends early', { on: 'GET .*/blobs/LAYER', times: 1, endAfter: 70_000 }, undefined],
    [
      'the registry is busy',
      { on: 'GET .*/blobs/', times: 2, status: 503, headers: { 'Retry-After': '0' } },
      undefined,
    ],
    [
      'there are too many requests',
      { on: '.*/manifests/', times: 1, status: 429, headers: { 'Retry-After': '1' } },
      undefined,
    ],
    [
      'a layer is corrupt',
      { on: 'GET .*/blobs/LAYER', times: 9, corruptAt: 1000 },
      /filesystem layer verification failed/,
    ],
    ['a layer is too long', { on: 'GET .*/blobs/LAYER', times: 9, bodySuffix: 'more' }, /larger than/],
    ['a layer is missing', { on: 'GET .*/blobs/LAYER', times: 9, status: 404 }, /404/],
    [
      'the configuration is corrupt',
      { on: 'GET .*/blobs/CONFIG', times: 9, corruptAt: 3 },
      /image config verification failed/,
    ],
    ['the manifest is corrupt', { on: 'GET .*/manifests/', times: 9, corruptAt: 3 }, /manifest verification failed/],
    [
      'nobody may come back soon',
      { on: 'GET .*/blobs/', times: 9, status: 429, headers: { 'Retry-After': '90000' } },
      /toomanyrequests/,
    ],
  ];
  for (const [why, fault, refusal] of faults) {
    test(`${why}: the pull ${refusal === undefined ? 'goes on' : 'fails and leaves nothing'}`, async () => {
      const image = await registries.putImage(`${PLAIN}/v2/faults`, 'x', [layer('small'), noise('large', 300_000)]);
      const on = fault.on.replace('LAYER', image.layers[1]!.digest).replace('CONFIG', image.id);
      await registries.seen();
      await registries.faults({ ...fault, on });

      const answer = await pull(`${PROXY}/faults`, { tag: 'x' });

      await registries.faults();
      if (refusal === undefined) {
        assert.equal(answer.status, 200, answer.text);
        assert.equal(errorIn(answer), undefined);
        assert.equal((await inspect(`${PROXY}/faults:x`)).Id, image.id);
        if ('cutAfter' in fault) assert.ok((await registries.seen()).some(({ range }) => range.startsWith('bytes=')));
      } else {
        assert.match(answer.text, refusal);
        assert.equal((await engine.get(`/images/${PROXY}/faults:x/json`)).status, 404);
      }
      await assertNothingLeft();
    });
  }

  test('two pulls of one layer download it once, and one goes on when the other client leaves', async () => {
    const image = await registries.putImage(`${PLAIN}/v2/twice`, 'x', [noise('shared', 200_000)]);
    const path = `/v2/twice/blobs/${image.layers[0]!.digest}`;
    await registries.seen();
    await registries.faults({ on: `GET ${path}`, times: 1, holdAfter: 100_000 });
    const leaving = new AbortController();
    const first = engine.post(`/images/create?fromImage=${PROXY}/twice:x`, undefined, { signal: leaving.signal });
    first.catch(() => undefined);
    const requests: string[] = [];
    while (!requests.includes(path)) requests.push(...(await registries.seen()).map((seen) => seen.path));
    const waiting = await engine.stream('POST', `/images/create?fromImage=${PROXY}/twice:x`);
    let said = '';
    for await (const chunk of waiting) {
      said += String(chunk);
      // It has joined the download of the other one when it is told how far that is.
      if (leaving.signal.aborted || !said.includes('"Downloading"')) continue;
      leaving.abort();
      await registries.release();
    }

    await assert.rejects(first);
    assert.match(said, /Downloaded newer image/);
    const again = (await registries.seen()).filter((seen) => seen.path === path);
    assert.deepEqual(again, []);
    await assertNothingLeft();
  });

  test('three layers download at once, and one is unpacked while later ones still arrive', async () => {
    const image = await registries.putImage(
      `${PLAIN}/v2/several`,
      'x',
      [1, 2, 3, 4, 5].map((n) => layer(`l${n}`)),
    );
    const paths = image.layers.map(({ digest }) => `/v2/several/blobs/${digest}`);
    await registries.seen();
    await registries.faults({ on: `GET (${paths.slice(1).join('|')})`, times: 4, hold: true });
    const stream = await engine.stream('POST', `/images/create?fromImage=${PROXY}/several:x`);
    let said = '';
    let asked: string[] = [];
    for await (const chunk of stream) {
      said += String(chunk);
      const isUnpacked = /Pull complete/.test(said) && !/Downloaded newer/.test(said);
      if (!isUnpacked || asked.length > 0) continue;
      // The first one is there; three others are on their way, and the last one waits.
      while (asked.length < 4) asked.push(...(await askedFor(paths)));
      for (let answered = 4; answered <= 5; answered += 1) {
        await registries.release();
        while (asked.length < Math.min(answered + 1, 5)) asked.push(...(await askedFor(paths)));
      }
      await registries.release();
    }
    await registries.faults();

    assert.match(said, /Waiting/);
    assert.match(said, /Downloaded newer image/);
    assert.deepEqual(new Set(asked), new Set(paths));
    await assertNothingLeft();
  });
  const askedFor = async (paths: readonly string[]): Promise<string[]> =>
    (await registries.seen()).map(({ path }) => path).filter((path) => paths.includes(path));

  test('a client that leaves ends the pull, and nothing is left', async () => {
    const image = await registries.putImage(`${PLAIN}/v2/left`, 'x', [noise('slow', 200_000)]);
    await registries.seen();
    await registries.faults({ on: `GET .*${image.layers[0]!.digest}`, times: 1, hold: true });
    const stream = await engine.stream('POST', `/images/create?fromImage=${PROXY}/left:x`);
    for (let isAsked = false; !isAsked;) {
      isAsked = (await registries.seen()).some(({ path }) => path.endsWith(image.layers[0]!.digest));
    }
    stream.on('error', () => undefined).destroy();
    const deadline = Date.now() + 60_000;
    while (readdirSync(join(engine.dataRoot, 'blobs/arriving')).length > 0 && Date.now() < deadline)
      await engine.get('/_ping');

    assert.equal((await engine.get(`/images/${PROXY}/left:x/json`)).status, 404);
    await registries.release();
    await assertNothingLeft();
  });

  test('tokens are fetched for the scope, by password and by identity token; secrets are told to nobody', async () => {
    await registries.putImage(`${PLAIN}/v2/guarded`, 'x', [layer('guarded')]);
    const name = `${WITH_TOKENS}/guarded`;

    const refused = [
      await pull(name, { tag: 'x' }),
      await pull(name, { tag: 'x', auth: { username: 'alice', password: 'wrong-password' } }),
    ];
    const byPassword = await pull(name, { tag: 'x', auth: ALICE });
    const byToken = await pull(name, { tag: 'x', auth: { identitytoken: 'refresh-alice' } });

    for (const { status, text } of refused) {
      assert.equal(status, 500);
      assert.match(text, /unauthorized: incorrect username or password/);
      assert.doesNotMatch(text, /wrong-password/);
    }
    assert.deepEqual([byPassword.status, byToken.status], [200, 200], byPassword.text + byToken.text);
    const granted = (await registries.seen()).filter(({ authorization }) => authorization.startsWith('Bearer'));
    assert.ok(granted.some(({ authorization }) => authorization === 'Bearer granted:repository:guarded:pull'));
    assert.doesNotMatch(engine.log, /secret-of-alice|wrong-password|refresh-alice/);
    await assertNothingLeft();
  });

  test('credentials do not follow a redirect to another host', async () => {
    const image = await registries.putImage(`${PLAIN}/v2/moved`, 'x', [layer('moved')]);
    const { digest } = image.layers[0]!;
    await registries.seen();
    await registries.faults({
      on: `GET .*${digest}`,
      times: 1,
      status: 307,
      headers: { Location: `http://127.0.0.1:5001/v2/moved/blobs/${digest}` },
    });

    const answer = await pull(`${WITH_TOKENS}/moved`, { tag: 'x', auth: ALICE });

    assert.equal(errorIn(answer), undefined, answer.text);
    const asked = (await registries.seen()).filter(({ path }) => path.endsWith(digest));
    assert.deepEqual(
      asked.map(({ authorization }) => authorization),
      ['Bearer granted:repository:moved:pull', ''],
    );
    await assertNothingLeft();
  });

  test('anything but an image is refused: manifests too large, of other kinds, and images of other systems', async () => {
    const good = await registries.putImage(`${PLAIN}/v2/odd`, 'windows', [layer('odd')], { os: 'windows' });
    const type = 'application/vnd.oci.image.manifest.v1+json';
    const manifest = {
      schemaVersion: 2,
      mediaType: type,
      config: { ...good.layers[0]!, mediaType: 'application/x' },
      layers: [],
    };
    await registries.putManifest(`${PLAIN}/v2/odd`, 'artifact', manifest, type);

    assert.match((await pull(`${PLAIN}/odd:windows`)).text, /operating system is not supported/);
    assert.match((await pull(`${PLAIN}/odd:artifact`)).text, /unsupported media type of the configuration/);
    await registries.faults({ on: 'GET .*/manifests/', times: 1, bodySuffix: ' '.repeat(5_000_000) });
    assert.match((await pull(`${PROXY}/odd:windows`)).text, /the manifest is larger than the limit/);
    const headers = { 'Content-Type': 'application/vnd.example' };
    await registries.faults(
      { on: 'HEAD .*/manifests/', times: 1, status: 404 },
      { on: 'GET .*/manifests/', times: 1, status: 200, headers, body: '{}' },
    );
    assert.match((await pull(`${PROXY}/odd:windows`)).text, /unsupported manifest media type/);
    await registries.faults();
    await assertNothingLeft();
  });
});

/**
 * Lines of layers that do not depend on speed. dockerd leaves out a line when the next one comes before it is
 * written, and writes those of layers in any order.
 */
const PASSING = /^(Waiting|Downloading|Verifying Checksum|Download complete|Extracting)$/;

function comparable(lines: readonly Line[]): unknown {
  const ofLayers = new Map<string, string[]>();
  for (const { id, status = '', progressDetail } of lines) {
    if (progressDetail === undefined || PASSING.test(status)) continue;
    ofLayers.set(id!, [...(ofLayers.get(id!) ?? []), status]);
  }
  return { ofLayers: [...ofLayers], others: lines.filter(({ progressDetail }) => progressDetail === undefined) };
}

function idsOf(wanted: string, lines: readonly Line[]): Set<string | undefined> {
  return new Set(lines.filter(({ status }) => status === wanted).map(({ id }) => id));
}

async function pullEvents(api: Pick<TestEngine, 'get'>): Promise<unknown[]> {
  const filters = encodeURIComponent(JSON.stringify({ type: ['image'], event: ['pull'] }));
  const until = Math.floor(Date.now() / 1000) + 1;
  const { raw } = await api.get(`/events?since=1&until=${until}&filters=${filters}`);
  return raw
    .toString()
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { Action: string; Actor: unknown; id: string; status: string })
    .map(({ Action, Actor, id, status }) => ({ Action, Actor, id, status }));
}
