import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';

import { Api } from '@gantry/testing/api.ts';
import { TarWriter, type TarEntry } from '@gantry/testing/archives/tar-writer.ts';
import { internalWord } from '@gantry/testing/internal-words.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf, type Files } from './compared.ts';

suite('builds', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--max-api-version=1.55'] });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function said(file: string, files: Files = {}, query = ''): Promise<string> {
    const { lines, message } = await build(engine, query, contextOf({ Dockerfile: file, ...files }));
    return message ?? lines.map(({ stream = '', error = '' }) => stream + error).join('');
  }

  test('take here-documents as scripts, as parts of commands and as files', async () => {
    const file = [
      'FROM busybox',
      'ENV NAME=me',
      'RUN <<EOF',
      'echo one',
      'echo "two $NAME"',
      'EOF',
      'RUN cat <<EOF | tr a-z A-Z',
      'upper',
      'EOF',
      'RUN <<SCRIPT',
      '#!/bin/cat',
      'shown as it is',
      'SCRIPT',
      'COPY <<EOF <<"RAW" /files/',
      'hello $NAME "quoted"',
      'EOF',
      'raw $NAME',
      'RAW',
      'RUN cat /files/EOF /files/RAW',
    ].join('\n');

    const text = await said(file);

    for (const line of ['one\n', 'two me\n', 'UPPER\n', 'shown as it is\n', 'hello me "quoted"\n', 'raw $NAME\n']) {
      assert.ok(text.includes(line), `${line} in ${text}`);
    }
  });

  test('give other users their files: here-documents, scripts and the context', async () => {
    const file = [
      'FROM busybox',
      'COPY <<ONE /one',
      '1',
      'ONE',
      'ADD <<TWO <<THREE /folder/',
      'TWO',
      'THREE',
      'COPY --chmod=710 <<FOUR /four',
      'FOUR',
      "RUN stat -c '<%a %n>' /one /folder /folder/TWO /folder/THREE /four",
      'USER daemon',
      'RUN <<SCRIPT',
      '#!/bin/cat',
      'run by daemon',
      'SCRIPT',
      'RUN --mount=target=/in cat /one /in/d/x',
    ].join('\n');

    const text = await said(file, { 'd/x': 'of the context\n' });

    const modes = Array.from(text.matchAll(/<(.*)>/g), ([, each]) => each);
    const expected = ['644 /one', '755 /folder', '644 /folder/TWO', '644 /folder/THREE', '710 /four'];
    assert.deepEqual(modes.slice(-5), expected, text);
    assert.match(text, /run by daemon\n[^]*\n1\nof the context\n[^]*Successfully built/);
  });

  test('copy folders with links that lead to each other', async () => {
    const files: Files = {
      'd/one': { type: 'symlink', linkName: 'two' },
      'd/two': { type: 'symlink', linkName: 'one' },
      'd/self': { type: 'symlink', linkName: 'self' },
    };

    const text = await said(
      'FROM busybox\nCOPY . /d/\nFROM busybox\nCOPY . /all/\nCOPY d/../d /d/\nCOPY --from=0 /d/d /e\nRUN ls /all/d /d /e\n',
      files,
    );

    assert.match(text, /\n\/all\/d:\none\nself\ntwo\n\n\/d:\none\nself\ntwo\n\n\/e:\none\nself\ntwo\n/);
  });

  test('copy a file under two names, and files with names that are not text', async () => {
    const file = [
      'FROM busybox',
      'COPY link a /two/',
      'COPY odd /odd',
      'RUN echo "<$(ls /two)>" && cat /odd/* && stat -c \'<%y>\' /two',
    ].join('\n');
    const odd = (byte: number): Partial<TarEntry> => ({
      content: `byte ${byte}\n`,
      pax: { path: Buffer.concat([Buffer.from('odd/'), Buffer.from([byte])]) },
    });

    const text = await said(file, {
      a: 'a',
      link: { type: 'symlink', linkName: 'a' },
      odd: { type: 'directory' },
      'odd/1': odd(0xfe),
      'odd/2': odd(0xff),
    });

    for (const line of ['<a\nlink>', 'byte 254\nbyte 255\n', /<[^.>]*\.0+ \+0000>/])
      assert.match(text, new RegExp(line));
  });

  test('are refused where a volume is over a file', async () => {
    for (const [lines, place] of [
      ['VOLUME /bin/sh', '/bin/sh'],
      ['VOLUME /link', '/link'],
      ['VOLUME /bin/sh/below', '/bin/sh/below'],
      ['VOLUME /etc/hosts', '/etc/hosts'],
      ['VOLUME /new\nCOPY x /new\nENV A=b', '/new'],
      ['VOLUME /new\nCOPY x /new\nWORKDIR /w', '/new'],
      ['VOLUME /new\nCOPY x /new\nRUN true', '/new'],
    ]) {
      const text = await said(`FROM busybox\nRUN ln -s bin/sh /link\n${lines}\n`, { x: 'x' });

      assert.ok(text.endsWith(`cannot mount volume over existing file, file exists ${place}`), text);
    }
    const folders = 'FROM busybox\nRUN ln -s none /dangling\nVOLUME /bin /new/folder /dangling / relative\nENV A=b\n';
    assert.match(await said(folders), /Successfully built/);
  });

  test('are refused in words of their own where a file cannot be', async () => {
    const long = 'x'.repeat(300);
    const loop: Files = { loop: { type: 'symlink', linkName: 'loop' }, a: 'a', 'd/b': 'b' };
    for (const [line, reason] of [
      ['COPY loop /x', 'COPY failed: file not found in build context or excluded by .dockerignore: stat loop: '],
      ['COPY a/b /x', 'COPY failed: file not found in build context or excluded by .dockerignore: stat a/b: '],
      ['COPY a /bin/sh/x', 'failed to copy files: Cannot mkdir: /bin/sh is not a directory'],
      ['COPY d /bin/sh/x/y', 'failed to copy files: Cannot mkdir: /bin/sh is not a directory'],
      ['ADD a /loop', 'failed to copy files: /loop: too many symbolic links'],
      [`COPY a /${long}`, `failed to copy files: /${long}: name too long`],
      [`COPY --from=busybox /${long} /x`, `COPY failed: stat ${long}: file does not exist`],
      [`WORKDIR /bin/sh/x`, 'Cannot mkdir: /bin/sh is not a directory'],
      [`WORKDIR /${long}`, `Cannot mkdir: /${long}: name too long`],
      ['COPY ["a", "/x\\u0000y"]', 'failed to parse Dockerfile: a word has a NUL character'],
      ['RUN echo \0', 'failed to parse Dockerfile: the file has a NUL character'],
    ] as const) {
      const text = await said(`FROM busybox\nRUN ln -s loop /loop\n${line}\n`, loop);

      assert.ok(text.includes(reason), text);
      assert.equal(internalWord(text), undefined, text);
    }
  });

  test('mount caches, files and memory for a step, which leave nothing in the image', async () => {
    const mounts = '--mount=type=cache,target=/cache --mount=target=/in,source=d --mount=type=tmpfs,target=/scratch';
    const file = `FROM busybox\nARG N\nRUN ${mounts} cat /in/x; echo $N >> /cache/n; cat /cache/n; grep -c " /scratch tmpfs" /proc/mounts\nRUN ls -d /cache /in /scratch || true`;
    const files = { 'd/x': 'bound\n' };

    const first = await said(file, files, `buildargs=${encodeURIComponent('{"N":"first"}')}`);
    const second = await said(file, files, `buildargs=${encodeURIComponent('{"N":"second"}')}`);

    assert.match(first, /bound\nfirst\n1\n/);
    assert.match(second, /bound\nfirst\nsecond\n1\n/);
    assert.match(second, /ls: \/cache: No such file/);
    const other = await said(file, { 'd/x': 'changed\n' }, `buildargs=${encodeURIComponent('{"N":"second"}')}`);
    assert.match(other, /changed\n/);
  });

  test('keep caches below their limit: the least recently used go', async () => {
    await using small = await TestEngine.start({ flags: ['--build-cache-size=3000000', '--bridge=none'] });
    const fill = async (id: string): Promise<string | undefined> => {
      const mount = `--mount=type=cache,id=${id},target=/c`;
      const file = `FROM busybox\nRUN ${mount} head -c 1400000 /dev/zero >/c/x`;
      return (await build(small, 'nocache=1&networkmode=none', contextOf({ Dockerfile: file }))).id;
    };
    const folder = join(small.dataRoot, 'build-caches');
    const caches = (): string[] => readdirSync(folder).filter((name) => !name.startsWith('.'));

    assert.ok(await fill('a'));
    const [first] = caches();
    assert.ok(await fill('b'));
    assert.ok(await fill('a')); // it is the newest now
    const second = caches().find((name) => name !== first)!;
    assert.ok(await fill('c'));

    const deadline = Date.now() + 60_000;
    while (caches().length > 2 && Date.now() < deadline) await new Promise<void>((resolve) => setTimeout(resolve, 50));
    assert.equal(caches().length, 2);
    assert.ok(caches().includes(first!) && !caches().includes(second));
  });

  test('set modes of copied files', async () => {
    const text = await said('FROM busybox\nCOPY --chmod=0750 d /d\nRUN stat -c "%a %n" /d/x', { 'd/x': 'x' });

    assert.match(text, /750 \/d\/x\n/);
  });

  test('leave out unused stages, and build the others at the same time', async () => {
    const file = [
      'FROM busybox AS unneeded',
      'RUN exit 1',
      'FROM busybox AS one',
      'RUN --mount=type=cache,target=/c touch /c/one; until test -e /c/two; do usleep 10000; done; echo > /1',
      'FROM busybox AS two',
      'RUN --mount=type=cache,target=/c touch /c/two; until test -e /c/one; do usleep 10000; done; echo > /2',
      'FROM busybox',
      'COPY --from=one /1 /',
      'COPY --from=two /2 /',
    ].join('\n');

    const text = await said(file);

    assert.match(text, /^Step 3\/9[\s\S]*Step 5\/9[\s\S]*Step 9\/9[\s\S]*Successfully built/);
  });

  test('take contexts of every compression', async () => {
    const plain = contextOf({ Buildfile: 'FROM busybox\nCOPY x /\n', x: 'x' });
    const forms = [
      gzipSync(plain),
      zstdCompressSync(plain),
      execFileSync('xz', ['-c'], { input: plain }),
      execFileSync('bzip2', ['-c'], { input: plain }),
    ];

    const results = [];
    for (const form of forms) results.push(await build(engine, '', form)); // each from the cache of the one before

    for (const { id } of results) assert.equal(id, results[0]!.id);
    assert.ok(results[0]!.id);
  });

  test('refuse hostile contexts, and leave nothing of them', async () => {
    const hostile = [
      new TarWriter().add({ name: '../out', content: 'x' }).end(),
      new TarWriter().add({ name: '/tmp/absolute', content: 'x' }).end(),
      new TarWriter()
        .add({ name: 'link', type: 'symlink', linkName: '/tmp' })
        .add({ name: 'link/x', content: 'x' })
        .end(),
      new TarWriter().add({ name: 'x', type: 'link', linkName: 'nothing' }).end(),
      new TarWriter().add({ name: 'x', type: 'link', linkName: '../out' }).end(),
      contextOf({ Dockerfile: 'FROM busybox\n' }).subarray(0, 700),
    ];

    for (const context of hostile) assert.equal((await build(engine, '', context)).status, 400);

    assert.equal(
      existsSync(join(engine.dataRoot, 'builds')) ? readdirSync(join(engine.dataRoot, 'builds')).length : 0,
      0,
    );
  });

  test('follow links of a context only within it', async () => {
    const files: Files = {
      'etc/passwd': 'own\n',
      absolute: { type: 'symlink', linkName: '/etc/passwd' },
      climbing: { type: 'symlink', linkName: '../../../etc/passwd' },
    };

    const text = await said('FROM busybox\nCOPY absolute climbing /x/\nRUN cat /x/absolute /x/climbing', files);

    assert.match(text, /own\nown\n/);
  });

  test('notice that a link which leads nowhere leads elsewhere', async () => {
    const file = 'FROM busybox\nCOPY d /d\nRUN readlink /d/l';
    const link = (linkName: string): Files => ({ 'd/l': { type: 'symlink', linkName }, 'd/x': 'x' });

    assert.match(await said(file, link('/opt/one')), /^\/opt\/one$/m);
    assert.match(await said(file, link('/opt/two')), /^\/opt\/two$/m);
  });

  test('make files of their context when a step needs them, and not before', async () => {
    const files = { d: 'd', ['n'.repeat(300)]: 'a name that no file system takes' };

    const without = await build(engine, '', contextOf({ ...files, Dockerfile: 'FROM busybox\nLABEL a=lazy' }));
    const withFile = await build(engine, '', contextOf({ ...files, Dockerfile: 'FROM busybox\nCOPY . /lazy' }));

    assert.ok(without.id);
    assert.match(withFile.lines.at(-1)?.error ?? '', /is too long/);
  });

  test('leave out files of the ignore file', async () => {
    const files = {
      '.buildignore': '# no\n**/*.log\n!keep/*.log\n/secret\nd?r\n',
      'a.log': '',
      'keep/b.log': '',
      'deep/er/c.log': '',
      'secret/x': '',
      'dir/y': '',
      'stays/z': '',
    };

    const text = await said('FROM busybox\nCOPY . /c\nRUN cd /c && find . -type f | sort | tr "\\n" " "', files);

    assert.match(text, /\.\/\.buildignore \.\/Dockerfile \.\/keep\/b\.log \.\/stays\/z /);
  });

  test('make no files that the ignore file names, but for files with other names', async () => {
    const files: Files = {
      '.dockerignore': 'left*\n',
      left: 'of the first name\n',
      'left-too': { type: 'link', linkName: './left' },
      kept: { type: 'link', linkName: 'left-too' },
    };
    const long = { '.dockerignore': 'nn*\n', ['n'.repeat(300)]: 'a name that no file system takes' };

    const text = await said('FROM busybox\nCOPY . /c\nRUN cat /c/kept; ls /c', files);
    const { id } = await build(engine, '', contextOf({ Dockerfile: 'FROM busybox\nCOPY . /c\n', ...long }));

    assert.match(text, /of the first name\nDockerfile\nkept\n/);
    assert.ok(id);
  });

  test('end with their client at once', async () => {
    const context = contextOf({ Dockerfile: 'FROM busybox\nRUN echo begun; sleep 1000\n' });
    const stream = await engine.stream('POST', '/build', {
      body: context,
      headers: { 'Content-Type': 'application/x-tar' },
    });
    for await (const chunk of stream) if (String(chunk).includes('begun')) break;
    stream.destroy();

    await untilNoContainer(engine);

    assert.equal(readdirSync(join(engine.dataRoot, 'builds')).length, 0);
  });

  test('end when they are canceled by their id', async () => {
    using api = new Api(engine.socketPath, '/v1.39');
    const stream = await api.stream('POST', '/build?buildid=one', {
      body: contextOf({ Dockerfile: 'FROM busybox\nRUN echo begun; sleep 1000\n' }),
      headers: { 'Content-Type': 'application/x-tar' },
    });
    let text = '';
    let cancel: Promise<{ status: number }> | undefined;
    for await (const chunk of stream) {
      text += String(chunk);
      if (text.includes('begun')) cancel ??= api.post('/build/cancel?id=one');
    }

    await untilNoContainer(engine);

    assert.equal((await cancel)?.status, 200);
    assert.match(text, /"error":"the build was canceled"/);
  });

  test('of a killed daemon leave nothing', async () => {
    const context = contextOf({ Dockerfile: 'FROM busybox\nRUN echo begun; sleep 1000\n' });
    const stream = await engine.stream('POST', '/build', {
      body: context,
      headers: { 'Content-Type': 'application/x-tar' },
    });
    stream.on('error', () => undefined);
    for await (const chunk of stream) if (String(chunk).includes('begun')) break;
    await engine.kill();
    await engine.startAgain();

    await untilNoContainer(engine);

    assert.equal(existsSync(join(engine.dataRoot, 'builds')), false);
  });
});

async function untilNoContainer(engine: TestEngine): Promise<void> {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const { body } = await engine.get<unknown[]>('/containers/json?all=1');
    const folder = join(engine.dataRoot, 'builds');
    const left = existsSync(folder) ? readdirSync(folder).length : 0;
    if (body.length === 0 && left === 0) return;
    if (Date.now() > deadline) throw new Error(`${body.length} containers and ${left} folders are left`);
    await new Promise<void>((resolve) => setTimeout(resolve, 50));
  }
}
