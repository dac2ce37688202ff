import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { clients, Project, type Said } from './project.ts';

suite('named contexts', { skip: clients === undefined && 'its packages could not be fetched' }, () => {
  let engine: TestEngine;
  let project: Project;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    project = await Project.make(engine.socketPath);
    await project.write({
      'more/kept': 'of the folder\n',
      'more/sub/deep': 'deep\n',
      'more/left-out': 'x',
      'more/.dockerignore': 'left-out\n',
    });
  });
  after(async () => {
    await project[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const build = async (name: string, lines: readonly string[], ...contexts: readonly string[]): Promise<Said> =>
    await project.build(
      name,
      { Dockerfile: lines.join('\n') },
      '--network=none',
      ...contexts.flatMap((each) => ['--build-context', each]),
    );
  const run = async (name: string, script: string): Promise<string> =>
    (await project.docker(['run', '--rm', '--network=none', name, 'sh', '-c', script])).text;

  test('a folder gives files to COPY, RUN and FROM, without those that its ignore file names', async () => {
    const lines = [
      'FROM more AS whole',
      'FROM busybox',
      'COPY --from=more kept /',
      'COPY --from=whole /sub/deep /',
      'RUN --mount=from=more,target=/m ls /m > /list',
    ];
    const first = await build('folder', lines, 'more=more');
    assert.equal(first.code, 0, first.text);
    assert.match(first.text, /\[context more\] load from client/);
    assert.equal(await run('folder', 'cat /kept /deep /list'), 'of the folder\ndeep\nkept\nsub\n');

    const again = await build('folder', lines, 'more=more');
    assert.equal(again.text.match(/CACHED/g)?.length, 3, again.text);
    await project.write({ 'more/sub/deep': 'changed\n' });
    const changed = await build('folder', lines, 'more=more');
    assert.equal(changed.code, 0, changed.text);
    assert.equal(await run('folder', 'cat /kept /deep'), 'of the folder\nchanged\n');
  });

  test('a name stands for an image under all its names, and instead of a stage', async () => {
    const made = await build('base', ['FROM busybox', 'RUN echo instead > /what']);
    assert.equal(made.code, 0, made.text);
    const lines = [
      'FROM nowhere.invalid/none:1 AS never',
      'RUN false',
      'FROM docker.io/library/alpine:latest',
      'COPY --from=never /what /copied',
      'RUN cat /what /copied > /all',
    ];

    const { code, text } = await build('image', lines, 'alpine=docker-image://base', 'never=docker-image://base');

    assert.equal(code, 0, text);
    assert.equal(await run('image', 'cat /all'), 'instead\ninstead\n');
  });

  test('an archive of a web server gives its files', async () => {
    await promisify(execFile)('tar', [
      '-C',
      join(project.folder, 'more'),
      '-cf',
      join(project.folder, 'm.tar'),
      'kept',
    ]);
    const script = `require('http').createServer((_, answer) => answer.end(require('fs').readFileSync('${join(project.folder, 'm.tar')}'))).listen(8123, '127.0.0.1', () => console.log('listening')); setTimeout(() => process.exit(), 600000)`;
    const server = execFile('nsenter', [`--net=${engine.netns}`, process.execPath, '-e', script]);
    for await (const text of server.stdout!) if (String(text).includes('listening')) break;

    const lines = ['FROM busybox', 'COPY --from=web kept /'];
    const { code, text } = await build('web', lines, 'web=http://127.0.0.1:8123/m.tar');
    server.kill();

    assert.equal(code, 0, text);
    assert.equal(await run('web', 'cat /kept'), 'of the folder\n');
  });

  test('an OCI layout of the client is an image', async () => {
    const output = 'type=oci,dest=layout,tar=false,compression=zstd';
    const file = 'FROM scratch\nCOPY Dockerfile /from-layout\nENV OF=layout\n';
    const written = await project.build('plain', { Dockerfile: file }, '--output', output);
    assert.equal(written.code, 0, written.text);

    const lines = [
      'FROM lay AS base',
      'FROM busybox',
      'COPY --from=base /from-layout /',
      'COPY --from=lay /from-layout /2',
    ];
    const { code, text } = await build('layout', lines, 'lay=oci-layout://layout');

    assert.equal(code, 0, text);
    assert.equal(await run('layout', 'cat /from-layout /2'), file.repeat(2));
  });

  test('targets of bake build on each other', async () => {
    const file = {
      target: {
        base: { 'dockerfile-inline': 'FROM busybox\nRUN echo made > /made\nENV OF=base\n', network: 'none' },
        app: {
          'dockerfile-inline': 'FROM base\nCOPY --from=base /made /copied\nRUN echo $OF > /of\n',
          contexts: { base: 'target:base' },
          tags: ['linked'],
          network: 'none',
        },
        both: {
          'dockerfile-inline': 'FROM files AS f\nFROM scratch\nCOPY --from=f /of /\n',
          contexts: { files: 'target:app' },
          tags: ['both'],
        },
      },
      group: { default: { targets: ['app', 'both'] } },
    };
    await project.write({ 'linked/docker-bake.json': JSON.stringify(file) });

    const { code, text } = await project.docker([
      'buildx',
      'bake',
      '--progress',
      'plain',
      '-f',
      'linked/docker-bake.json',
    ]);

    assert.equal(code, 0, text);
    assert.equal(await run('linked', 'cat /made /copied /of'), 'made\nmade\nbase\n');
    assert.equal((await engine.get('/images/both/json')).status, 200);
  });

  test('an image that is not there is refused', async () => {
    const missing = await build('missing', ['FROM lay'], 'lay=docker-image://127.0.0.1:1/none');
    assert.equal(missing.code, 1);
    assert.match(missing.text, /127\.0\.0\.1:1/);
  });
});
