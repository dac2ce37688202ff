import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, suite, test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxLayer } from '@gantry/testing/busybox-image.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf, type Files } from '../../build/compared.ts';

const TAR = { headers: { 'Content-Type': 'application/x-tar' } };
const encode = (value: unknown): string => encodeURIComponent(JSON.stringify(value));
const sha256 = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex');

type Inspect = {
  Id: string;
  RootFS: { Layers: string[] };
  ContainerConfig: { Cmd: string[] };
  Config: { Env: string[] };
};
/** An image with the commands of its history, oldest first. */
type Step = Inspect & { commands: string[] };

suite('the cache of builds', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => (engine = await TestEngine.start({ flags: ['--bridge=none'] })));
  after(async () => await engine[Symbol.asyncDispose]());

  async function said(file: string, files: Files = {}, query = ''): Promise<string> {
    const context = contextOf({ Dockerfile: file, ...files });
    const { lines, message } = await build(engine, `networkmode=none&${query}`, context);
    return message ?? lines.map(({ stream = '', error = '' }) => stream + error).join('');
  }
  const idIn = (text: string): string => /Successfully built (\w+)/.exec(text)![1]!;
  const inspect = async (name: string): Promise<Inspect> => (await engine.get<Inspect>(`/images/${name}/json`)).body;
  const hits = (text: string): number => text.match(/Using cache/g)?.length ?? 0;

  /** Builds, and removes the image again. */
  async function removedStep(file: string, files: Files): Promise<Step> {
    const step = await inspect(idIn(await said(file, files)));
    const { body: history } = await engine.get<{ CreatedBy: string }[]>(`/images/${step.Id}/history`);
    assert.equal((await engine.delete(`/images/${step.Id}`)).status, 200);
    return { ...step, commands: history.map(({ CreatedBy }) => CreatedBy).toReversed() };
  }

  /** Loads an image that claims to be the result of a step; its layer has the file `evil`. */
  async function loadForged(step: Step, { name, parent }: { name: string; parent?: Inspect }): Promise<string> {
    const layer = new TarWriter().add({ name: 'evil', content: 'evil' }).end();
    const below = parent?.RootFS.Layers ?? [];
    const config = JSON.stringify({
      architecture: 'amd64',
      os: 'linux',
      created: '2099-01-01T00:00:00Z', // the newest one counts
      config: step.Config,
      container_config: step.ContainerConfig,
      rootfs: { type: 'layers', diff_ids: [...below, `sha256:${sha256(layer)}`] },
      history: step.commands.map((command) => ({ created: '2024-01-01T00:00:00Z', created_by: command })),
    });
    const id = sha256(config);
    const item = {
      Config: `${id}.json`,
      RepoTags: [name],
      Layers: [...below.map((_, at) => `${at}/layer.tar`), 'evil/layer.tar'],
      ...(parent !== undefined && { Parent: parent.Id }),
    };
    const tar = new TarWriter().add({ name: `${id}.json`, content: config });
    for (const at of below.keys()) tar.add({ name: `${at}/layer.tar`, content: busyboxLayer() });
    tar.add({ name: 'evil/layer.tar', content: layer });
    tar.add({ name: 'manifest.json', content: JSON.stringify([item]) });
    const { raw, status } = await engine.post('/images/load', tar.end(), TAR);
    assert.equal(status, 200, raw.toString());
    assert.doesNotMatch(raw.toString(), /error/, raw.toString());
    return `sha256:${id}`;
  }

  const differing: readonly [string, string, [Files, string], [Files, string]][] = [
    [
      'the value of an argument',
      'FROM busybox\nARG V\nRUN echo "$V"',
      [{}, `buildargs=${encode({ V: 'a' })}`],
      [{}, `buildargs=${encode({ V: 'b' })}`],
    ],
    [
      'two arguments whose values look alike in a row',
      'FROM busybox\nARG A\nARG B\nRUN echo "$A" "$B"',
      [{}, `buildargs=${encode({ A: 'x B=y', B: '' })}`],
      [{}, `buildargs=${encode({ A: 'x', B: 'y B=' })}`],
    ],
    [
      'the content of a file of the same size and time',
      'FROM busybox\nCOPY f /',
      [{ f: 'one' }, ''],
      [{ f: 'two' }, ''],
    ],
    [
      'the mode of a file',
      'FROM busybox\nCOPY f /',
      [{ f: { content: 'mode', mode: 0o644 } }, ''],
      [{ f: { content: 'mode', mode: 0o755 } }, ''],
    ],
    [
      'a file in a folder, by its name alone',
      'FROM busybox\nCOPY d /d',
      [{ 'd/a': 'same' }, ''],
      [{ 'd/b': 'same' }, ''],
    ],
    [
      'the target of a link',
      'FROM busybox\nCOPY d /d',
      [{ 'd/l': { type: 'symlink', linkName: 'a' } }, ''],
      [{ 'd/l': { type: 'symlink', linkName: 'b' } }, ''],
    ],
    [
      'a file that the ignore file leaves out',
      'FROM busybox\nCOPY d /d',
      [{ 'd/a': '1', 'd/b': '2' }, ''],
      [{ 'd/a': '1', 'd/b': '2', '.dockerignore': 'd/b' }, ''],
    ],
    [
      'a file of a context that a step binds',
      'FROM busybox\nRUN --mount=type=bind,source=f,target=/f cat /f',
      [{ f: 'one' }, ''],
      [{ f: 'two' }, ''],
    ],
  ];
  for (const [what, file, [oneFiles, oneQuery], [otherFiles, otherQuery]] of differing) {
    test(`has no hit where a build differs in ${what}`, async () => {
      const first = await said(file, oneFiles, oneQuery);
      const again = await said(file, oneFiles, oneQuery);
      const other = await said(file, otherFiles, otherQuery);

      assert.equal(idIn(again), idIn(first));
      assert.notEqual(idIn(other), idIn(first));
      assert.ok(hits(other) < hits(again), other);
    });
  }

  for (const [what, change] of [
    ['a health check', 'HEALTHCHECK --interval=1s CMD true|HEALTHCHECK --interval=2s CMD true'],
    ['a trigger', 'ONBUILD RUN a|ONBUILD RUN b'],
    ['a signal', 'STOPSIGNAL 1|STOPSIGNAL 2'],
    ['a shell', 'SHELL ["a", "b"]|SHELL ["a", "c"]'],
  ] as const) {
    test(`has no hit where a build differs in ${what}`, async () => {
      const [one, other] = change.split('|') as [string, string];
      const first = await said(`FROM busybox\n${one}`);

      assert.notEqual(idIn(await said(`FROM busybox\n${other}`)), idIn(first));
    });
  }

  test('follows a name to another image, in FROM and in COPY --from', async () => {
    const make = async (content: string): Promise<void> => {
      await said('FROM busybox\nCOPY f /f', { f: content }, 't=moving');
    };
    const file = 'FROM moving\nRUN true\nFROM busybox\nCOPY --from=0 /f /f\nCOPY --from=moving /f /g';
    await make('one');
    const first = await said(file);
    await make('two');

    assert.notEqual(idIn(await said(file)), idIn(first));
  });

  test('ignores a loaded image that claims to be a step on an empty root (CVE-2024-24557)', async () => {
    const file = 'FROM scratch\nCOPY f /f';
    const files = { f: 'of the user' };
    const honest = await removedStep(file, files);
    const forged = await loadForged(honest, { name: 'forged:scratch' });

    const built = await inspect(idIn(await said(file, files)));

    assert.notEqual(built.Id, forged);
    assert.deepEqual(built.RootFS.Layers, honest.RootFS.Layers);
  });

  test('ignores a loaded image that names a base here as its parent', async () => {
    const file = 'FROM busybox\nCOPY f /f2';
    const files = { f: 'of the user too' };
    const honest = await removedStep(file, files);
    const forged = await loadForged(honest, { name: 'forged:parent', parent: await inspect('busybox') });

    const built = await inspect(idIn(await said(file, files)));

    assert.notEqual(built.Id, forged);
    assert.deepEqual(built.RootFS.Layers, honest.RootFS.Layers);
  });

  test('ignores a commit of a container with the command of a step', async () => {
    const honest = await removedStep('FROM busybox\nENV A=b', {});
    const { Cmd } = honest.ContainerConfig;
    const id = await engine.create(Cmd, { Env: honest.Config.Env });
    const { body } = await engine.post<{ Id: string }>(`/commit?container=${id}`, { Cmd, Env: ['A=evil'] });

    const built = idIn(await said('FROM busybox\nENV A=b'));

    assert.notEqual(body.Id.replace('sha256:', '').slice(0, 12), built);
    assert.ok((await inspect(built)).Config.Env.includes('A=b'));
  });

  test('takes the steps of an image that a client names, and gives them to no other build', async () => {
    const file = 'FROM busybox\nCOPY f /f3';
    const files = { f: 'of a third user' };
    const honest = await removedStep(file, files);
    const forged = await loadForged(honest, { name: 'forged:named', parent: await inspect('busybox') });

    const named = await inspect(idIn(await said(file, files, `cachefrom=${encode(['forged:named'])}`)));
    const built = await inspect(idIn(await said(file, files)));

    assert.equal(named.Id, forged, 'a client may trust it for its own build');
    assert.notEqual(built.Id, forged);
    assert.deepEqual(built.RootFS.Layers, honest.RootFS.Layers);
  });
});
