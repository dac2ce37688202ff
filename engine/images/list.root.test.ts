import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { Api } from '@gantry/testing/api.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';
import { TestImages } from '@gantry/testing/test-images.ts';

import { listImages } from './list.ts';
import { parseReference } from './names/reference.ts';

const DIGEST = `sha256:${'1'.repeat(64)}`;

suite('listed images', { concurrency: false }, () => {
  let engine: TestImages;
  const kinds = new Map<string, string>();

  before(async () => {
    engine = new TestImages();
    // An image of each kind; a `-step` has a child, which is the tagged one.
    for (const kind of ['tag', 'tag-step', 'digest', 'digest-step', 'both', 'nameless', 'step']) {
      await engine.load(imageArchive(new TarWriter().add({ name: kind }).end(), ['new:1'], { Cmd: [kind] }));
      const { id } = engine.images.find('new:1');
      kinds.set(id, kind);
      engine.images.unrefer(parseReference('new:1'));
      if (/tag|both/.test(kind)) engine.images.refer(parseReference(`${kind}:1`), id);
      if (/digest|both/.test(kind)) engine.images.refer(parseReference(`${kind}@${DIGEST}`), id);
    }
    const child = engine.images.find('tag:1').id;
    await engine.load(imageArchive(new TarWriter().add({ name: 'second' }).end(), ['second:1'], { Cmd: ['second'] }));
    await engine.load(imageArchive(new TarWriter().add({ name: 'third' }).end(), ['third:1'], { Cmd: ['third'] }));
    const children = [child, engine.images.find('second:1').id, engine.images.find('third:1').id];
    for (const [index, kind] of ['tag-step', 'digest-step', 'step'].entries()) {
      const [id] = [...kinds].find(([, each]) => each === kind)!;
      engine.images.setParent(children[index]!, id);
    }
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const NAMED = ['both', 'digest', 'digest-step', 'tag', 'tag-step'];
  const rows: readonly (readonly [all: boolean, dangling: string | undefined, listed: readonly string[]])[] = [
    [false, undefined, [...NAMED, 'nameless']],
    [true, undefined, [...NAMED, 'nameless', 'step']],
    [false, 'true', ['digest', 'nameless']],
    [true, 'true', ['digest', 'nameless']],
    [false, 'false', NAMED],
    [true, 'false', NAMED],
  ];

  for (const [all, dangling, listed] of rows) {
    test(`with all=${all} and dangling=${dangling} are ${listed.join(', ')}`, async () => {
      const filters = new Map(dangling === undefined ? [] : [['dangling', new Set([dangling])]]);

      const shown = await listImages(engine, { all, filters });
      const found = shown.flatMap(({ image }) => kinds.get(image.id) ?? []);

      assert.deepEqual(found.toSorted(), listed.toSorted());
    });
  }
});

suite('GET /images/json for newer clients', { concurrency: false }, () => {
  type Summary = { Containers: number; RepoTags: string[] | null; RepoDigests: string[] | null; SharedSize: number };
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ version: '1.55' });
    const base = new TarWriter().add({ name: 'base', content: 'x' }).end();
    for (const name of ['first', 'second']) {
      const own = new TarWriter().add({ name, content: name }).end();
      await engine.post('/images/load', imageArchive([base, own], [`${name}:1`], { Cmd: ['sh'] }));
    }
    await engine.post('/containers/create', { Image: 'first:1' });
    await engine.post('/images/load', imageArchive([base], ['second:1'], { Cmd: ['sh'] }));
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function listed(version: string, query = ''): Promise<Summary[]> {
    using api = new Api(engine.socketPath, `/v${version}`);
    const { status, body } = await api.get<Summary[]>(`/images/json${query}`);
    assert.equal(status, 200);
    const loaded = body.filter(({ RepoTags }) => RepoTags?.every((name) => !name.startsWith('busybox')) ?? true);
    return loaded.toSorted((a, b) => String(a.RepoTags).localeCompare(String(b.RepoTags)));
  }

  for (const [version, names] of [
    ['1.24', [['<none>:<none>', '<none>@<none>'], ['first:1'], ['second:1']]],
    ['1.42', [['<none>:<none>', '<none>@<none>'], ['first:1'], ['second:1']]],
    ['1.43', [[], ['first:1'], ['second:1']]],
  ] as const) {
    test(`names at ${version}`, async () => {
      const images = await listed(version);

      assert.deepEqual(
        images.map(({ RepoTags, RepoDigests }) => [...(RepoTags ?? []), ...(RepoDigests ?? [])]),
        names,
      );
    });
  }

  for (const [version, counts] of [
    ['1.50', [-1, -1, -1]],
    ['1.51', [0, 1, 0]],
  ] as const) {
    test(`Containers at ${version}`, async () => {
      const images = await listed(version);

      assert.deepEqual(
        images.map(({ Containers }) => Containers),
        counts,
      );
    });
  }

  test('SharedSize is computed on request alone', async () => {
    const without = await listed('1.55');
    const shared = await listed('1.55', '?shared-size=1');

    assert.ok(without.every(({ SharedSize }) => SharedSize === -1));
    assert.ok(shared.every(({ SharedSize }) => SharedSize > 0));
  });

  test('the filter until selects older images, and refuses an invalid time', async () => {
    const until = (value: string): string => `?filters=${encodeURIComponent(JSON.stringify({ until: [value] }))}`;

    assert.equal((await listed('1.55', until('1970-01-01T00:00:00Z'))).length, 0);
    assert.equal((await listed('1.55', until('0s'))).length, 3);
    using api = new Api(engine.socketPath, '/v1.55');
    assert.equal((await api.get(`/images/json${until('soon')}`)).status, 400);
  });
});
