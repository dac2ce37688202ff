import assert from 'node:assert/strict';
import { readdir, readFile, readlink, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { contextOf } from '../compared.ts';
import { clients, Project } from './project.ts';

type Inspected = { Id: string; Config: Record<string, unknown>; RootFS: { Layers: string[] }; Comment: string };

suite('docker build with buildx', { skip: clients === undefined && 'its packages could not be fetched' }, () => {
  let engine: TestEngine;
  let project: Project;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    project = await Project.make(engine.socketPath);
  });
  after(async () => {
    await project[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const inspect = async (name: string): Promise<Inspected> =>
    (await engine.get<Inspected>(`/images/${name}/json`)).body;
  const run = async (name: string, ...command: string[]): Promise<string> =>
    (await project.docker(['run', '--rm', name, ...command])).text;

  test('builds an image with nothing set, names it, and finds the steps in the cache again', async () => {
    const files = {
      Dockerfile:
        'FROM busybox\nARG TARGETARCH\nENV A=b\nWORKDIR /app\nCOPY f sub/ ./\nRUN echo for $TARGETARCH; cat f > out\nCMD ["cat", "out"]\n',
      f: 'content\n',
      'sub/deep': 'x',
      ignored: 'junk',
      '.dockerignore': '# not this\nignored\n',
    };
    const first = await project.build('plain', files, '--network=none');
    assert.equal(first.code, 0, first.text);
    assert.match(first.text, /\[1\/4\] FROM docker\.io\/library\/busybox:latest/);
    assert.match(first.text, /\[internal\] load build context[^]*\[3\/4\] COPY f sub\/ \.\//);
    assert.match(first.text, /\[4\/4\] RUN echo for (?:amd64|arm64)[^]*\d for (amd64|arm64)\n/);
    assert.match(first.text, /naming to docker\.io\/library\/plain/);
    assert.equal(await run('plain'), 'content\n');

    const { Id } = await inspect('plain');
    const again = await project.build('plain', files, '--network=none');
    assert.equal(again.text.match(/CACHED/g)?.length, 3);
    assert.equal((await inspect('plain')).Id, Id);
  });

  test('writes settings and history as BuildKit', async () => {
    const lines = [
      'FROM busybox',
      'LABEL a=b',
      'ENV X=1 Y="two words"',
      'EXPOSE 80 53/udp',
      'VOLUME /data /logs',
      'ARG V=1',
      'ARG W',
      'RUN true',
      'USER 1000',
      'HEALTHCHECK --interval=5s CMD true',
      'ENTRYPOINT ["echo"]',
      'CMD hi',
      'ONBUILD RUN echo trigger',
    ];
    const { code, text } = await project.build(
      'settings',
      { Dockerfile: lines.join('\n') },
      '--network=none',
      '--label',
      'c=d',
      '--build-arg',
      'V=9',
    );
    assert.equal(code, 0, text);
    const { Config, Comment } = await inspect('settings');
    const { Labels, Env, ExposedPorts, Volumes, User, Cmd, Entrypoint, OnBuild } = Config;
    assert.deepEqual(
      { Labels, ExposedPorts, Volumes, User, Cmd, Entrypoint, OnBuild, own: (Env as string[]).slice(1) },
      {
        Labels: { a: 'b', c: 'd' },
        ExposedPorts: { '80/tcp': {}, '53/udp': {} },
        Volumes: { '/data': {}, '/logs': {} },
        User: '1000',
        Cmd: ['/bin/sh', '-c', 'hi'],
        Entrypoint: ['echo'],
        OnBuild: ['RUN echo trigger'],
        own: ['X=1', 'Y=two words'],
      },
    );
    assert.equal(Comment, 'buildkit.dockerfile.v0');
    const { body } = await engine.get<{ CreatedBy: string; Comment: string }[]>('/images/settings/history');
    const own = body.filter((step) => step.Comment === 'buildkit.dockerfile.v0');
    assert.deepEqual(own.map(({ CreatedBy }) => CreatedBy).toReversed(), [
      'LABEL a=b',
      'ENV X=1 Y=two words',
      'EXPOSE [53/udp 80/tcp]',
      'VOLUME [/data /logs]',
      'ARG V=9',
      'ARG W',
      'RUN |2 V=9 W= /bin/sh -c true # buildkit',
      'USER 1000',
      String.raw`HEALTHCHECK &{["CMD-SHELL" "true"] "5s" "0s" "0s" "0s" '\x00'}`,
      'ENTRYPOINT ["echo"]',
      'CMD ["/bin/sh" "-c" "hi"]',
    ]);
  });

  test('skips stages that nothing needs, copies between stages, and builds the target', async () => {
    const file = [
      'ARG BASE=busybox',
      'FROM $BASE AS one',
      'RUN echo one > /f',
      'FROM busybox AS unused',
      'RUN false',
      'FROM busybox AS two',
      'COPY --from=one /f /g',
      'FROM two AS three',
      'RUN false',
    ];
    const { code, text } = await project.build(
      'stages',
      { Dockerfile: file.join('\n') },
      '--network=none',
      '--target',
      'two',
    );
    assert.equal(code, 0, text);
    assert.match(text, /\[one 2\/2\] RUN echo one > \/f/);
    assert.doesNotMatch(text, /unused/);
    assert.equal(await run('stages', 'cat', '/g'), 'one\n');
    const cached = await project.build('stages', {}, '--network=none', '--target', 'two', '--no-cache-filter', 'two');
    assert.match(cached.text, /\[one 2\/2\] RUN[^\n]*\n#\d+ CACHED/);
    assert.doesNotMatch(cached.text, /\[two 2\/2\] COPY[^\n]*\n#\d+ CACHED/);
  });

  test('gives a step secrets of the client, caches and files of the context', async () => {
    const file = [
      '# syntax=docker/dockerfile:1',
      'FROM busybox',
      'RUN --mount=type=secret,id=s cat /run/secrets/s',
      'RUN --mount=type=secret,id=none test ! -e /run/secrets/none',
      'RUN --mount=type=cache,target=/c echo x >> /c/f; wc -l < /c/f',
      'RUN --mount=type=bind,source=f,target=/m cat /m',
      'RUN <<EOF',
      'echo here > /h',
      'EOF',
    ];
    await project.write({ secret: 'open-sesame' });
    const { code, text } = await project.build(
      'mounts',
      { Dockerfile: file.join('\n'), f: 'bound' },
      '--network=none',
      '--secret',
      'id=s,src=secret',
    );
    assert.equal(code, 0, text);
    assert.match(text, /open-sesame[^]*\d 1\n[^]*bound/);
    assert.equal(await run('mounts', 'cat', '/h'), 'here\n');
    assert.ok(!(await engine.get('/images/mounts/get')).raw.includes('open-sesame'));
  });

  test('shows the lines of a step that fails, and of an instruction that is none', async () => {
    const failed = await project.build(
      'failing',
      { Dockerfile: 'FROM busybox\nRUN echo out; \\\n  exit 3\n' },
      '--network=none',
    );
    assert.equal(failed.code, 1);
    assert.match(
      failed.text,
      /ERROR: process "\/bin\/sh -c echo out; +exit 3" did not complete successfully: exit code: 3/,
    );
    assert.match(failed.text, /Dockerfile:2\n-+\n[^]*2 \| >>> RUN echo out[^]*3 \| >>> +exit 3/);
    const unknown = await project.build('unknown', { Dockerfile: 'FROM busybox\nJUMP\n' });
    assert.match(unknown.text, /2 \| >>> JUMP[^]*dockerfile parse error on line 2: unknown instruction: JUMP/);
    const missing = await project.build('missing', { Dockerfile: 'FROM busybox\nCOPY nope /\n' });
    assert.match(missing.text, /2 \| >>> COPY nope \/[^]*nope/);
    const { body } = await engine.get<unknown[]>('/containers/json?all=1');
    assert.deepEqual(body, []);
  });

  test('reads the file from another place, and its own ignore file', async () => {
    const files = {
      'other/My.file': 'FROM scratch\nCOPY . /\n',
      'other/My.file.dockerignore': 'b\nother',
      a: '1',
      b: '2',
    };
    const { code, text } = await project.build('elsewhere', files, '-f', 'elsewhere/other/My.file', '--iidfile', 'id');
    assert.equal(code, 0, text);
    const { raw } = await engine.get('/images/elsewhere/get');
    assert.ok(raw.length > 0);
    const stdin = await project.docker(['build', '-q', '-f', '-', 'elsewhere'], 'FROM busybox\nLABEL from=stdin\n');
    assert.match(stdin.text, /^sha256:[0-9a-f]{64}\n$/);
    assert.deepEqual((await inspect(stdin.text.trim())).Config['Labels'], { from: 'stdin' });
  });

  test('takes a context from standard input, and from a web server', async () => {
    const archive = contextOf({ Dockerfile: 'FROM scratch\nCOPY f /\nLABEL from=input\n', f: 'x' });
    const input = await project.docker(['build', '-q', '-'], archive);
    assert.match(input.text, /^sha256:[0-9a-f]{64}\n$/);
    assert.deepEqual((await inspect(input.text.trim())).Config['Labels'], { from: 'input' });
    const nowhere = await project.docker(['build', '-q', 'http://127.0.0.1:1/context.tar']);
    assert.match(nowhere.text, /127\.0\.0\.1:1/);
    assert.equal(nowhere.code, 1);
  });

  test('sends the files of the result into a folder, and as an archive', async () => {
    const lines = ['FROM scratch', 'COPY --chown=1:2 f /sub/', 'COPY --chmod=4755 f /x'];
    await project.write({ 'files/f': 'content', 'files/sub/big': 'y'.repeat(300_000) });
    await symlink('big', join(project.folder, 'files/sub/link'));
    const file = [...lines, 'COPY sub /sub'].join('\n');
    const local = await project.build('files', { Dockerfile: file }, '--output', 'type=local,dest=out');
    assert.equal(local.code, 0, local.text);
    const out = (name: string): string => join(project.folder, 'out', name);
    assert.deepEqual((await readdir(out('.'))).toSorted(), ['sub', 'x']);
    assert.equal(await readFile(out('sub/f'), 'utf8'), 'content');
    assert.equal((await readFile(out('sub/big'))).length, 300_000);
    assert.equal(await readlink(out('sub/link')), 'big');
    assert.equal((await stat(out('x'))).mode & 0o7777, 0o4755);
    const tar = await project.build('files', {}, '--output', 'type=tar,dest=out.tar');
    assert.equal(tar.code, 0, tar.text);
    const names = [...tarList(await readFile(join(project.folder, 'out.tar'))).keys()];
    assert.deepEqual(
      names
        .map((name) => name.replace(/^\.?\/|\/$/g, ''))
        .filter(Boolean)
        .toSorted(),
      ['sub', 'sub/big', 'sub/f', 'sub/link', 'x'],
    );
  });

  test('its caches are shown and pruned', async () => {
    const file = 'FROM busybox\nRUN --mount=type=cache,target=/kept echo content > /kept/f\n';
    assert.equal((await project.build('caches', { Dockerfile: file }, '--network=none')).code, 0);
    assert.match((await project.docker(['buildx', 'du'])).text, /Reclaimable:\s+\d/);
    const recent = await project.docker(['buildx', 'prune', '-f', '--filter', 'until=1h']);
    assert.match(recent.text, /Total:\s+0B/);
    assert.match((await project.docker(['buildx', 'prune', '-f'])).text, /Total:\s+[1-9]/);
    assert.match((await project.docker(['buildx', 'du'])).text, /Total:\s+0B/);
  });

  test('ends with its client, and leaves no container', async () => {
    await project.write({ 'left/Dockerfile': 'FROM busybox\nRUN --network=none echo has begun; sleep 1000\n' });
    await project.leave('left', ' has begun');
    for (;;) {
      const { body } = await engine.get<unknown[]>('/containers/json?all=1');
      if (body.length === 0) break;
      await setTimeout(50);
    }
  });
});
