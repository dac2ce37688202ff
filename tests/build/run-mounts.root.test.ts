import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf, type Files } from './compared.ts';

/** A signal between two steps: each waits until the other one is there. */
const GATE = '--mount=type=cache,id=gate,target=/gate';
const both = (mine: string, other: string): string =>
  `touch /gate/${mine}; until test -e /gate/${other}; do usleep 10000; done`;

suite('mounts of a step', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function said(lines: readonly string[], files: Files = {}): Promise<string> {
    const context = contextOf({ Dockerfile: lines.join('\n'), ...files });
    const built = await build(engine, 'nocache=1&networkmode=none&forcerm=1', context);
    return built.message ?? built.lines.map(({ stream = '', error = '' }) => stream + error).join('');
  }
  /** Mounts of running builds. */
  const mounts = (): string[] =>
    readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line.includes(`${engine.dataRoot}/builds/`));

  test('come from stages and images: folders, files and all of it', async () => {
    const text = await said([
      'FROM busybox AS made',
      'RUN mkdir /d && echo of-the-stage >/d/x',
      'FROM busybox',
      'RUN --mount=from=made,source=/d,target=/in cat /in/x; ! touch /in/y',
      'RUN --mount=from=0,source=d/x,target=/file cat /file',
      'RUN --mount=from=busybox,target=/all ls -d /all/bin /all/d',
      'RUN --mount=from=made,source=/none,target=/in true',
    ]);

    assert.match(text, /Step 4\/7[\s\S]*of-the-stage\n[\s\S]*Step 5\/7[\s\S]*of-the-stage\n[\s\S]*Step 6\/7/);
    assert.match(text, /\/all\/bin\n/);
    assert.match(text, /ls: \/all\/d: No such file/);
    assert.match(text, /non-zero code: 1/);
    assert.deepEqual(mounts(), []);
  });

  test('follow links within their image only', async () => {
    const inside = 'ls /in && cat /in/mine';
    const text = await said([
      'FROM busybox AS made',
      'RUN ln -s /etc /link && ln -s ../../../../../../../../../../etc /far && mkdir /d && ln -s / /d/up && echo inside >/etc/mine',
      'FROM busybox',
      ...['/link', '/far', '/d/up/etc'].map((source) => `RUN --mount=from=made,source=${source},target=/in ${inside}`),
    ]);

    assert.equal(text.match(/^inside$/gm)?.length, 3, text);
    assert.doesNotMatch(text, /^hostname$|^machine-id$/m);
  });

  test('that may be written pass their files to the next step', async () => {
    const change = 'echo changed >/in/x; echo new >/in/new; cat /in/x /in/new';
    const text = await said(
      [
        'FROM busybox AS made',
        'RUN mkdir /d && echo original >/d/x',
        'FROM busybox',
        `RUN --mount=from=made,source=/d,target=/in,rw ${change}`,
        'RUN --mount=from=made,source=/d,target=/in,rw ls /in; cat /in/x',
        `RUN --mount=source=d,target=/in,rw ${change}`,
        'RUN --mount=source=d,target=/in ls /in; cat /in/x',
        'RUN --mount=source=d/x,target=/x,rw echo of-a-file >/x; cat /x',
        'COPY d /d',
        'RUN ls /d; cat /d/x',
      ],
      { 'd/x': 'original\n' },
    );

    assert.match(text, /Successfully built/);
    assert.equal(text.match(/^changed\nnew$/gm)?.length, 2, text);
    assert.equal(text.match(/^x\noriginal$/gm)?.length, 3, text);
    assert.match(text, /^of-a-file$/m);
    assert.deepEqual(mounts(), []);
  });

  test('of a killed daemon are gone with the next one', async () => {
    const file = [
      'FROM busybox',
      'RUN --mount=from=busybox,target=/in --mount=source=d,target=/out,rw echo begun; sleep 1000',
    ];
    const stream = await engine.stream('POST', '/build?networkmode=none', {
      body: contextOf({ Dockerfile: file.join('\n'), 'd/x': 'x' }),
      headers: { 'Content-Type': 'application/x-tar' },
    });
    stream.on('error', () => undefined);
    for await (const chunk of stream) if (String(chunk).includes('begun')) break;
    assert.notDeepEqual(mounts(), []);
    await engine.kill();
    await engine.startAgain();

    assert.deepEqual(mounts(), []);
    const deadline = Date.now() + 60_000;
    while ((await engine.get<[]>('/containers/json?all=1')).body.length > 0 && Date.now() < deadline)
      await setTimeout(50);
    assert.deepEqual((await engine.get('/containers/json?all=1')).body, []);
  });

  test('of a cache that is locked have it for themselves, in stages that name two of them in any order as well', async () => {
    const cache = (id: string): string => `--mount=type=cache,id=${id},target=/${id},sharing=locked`;
    const alone = 'mkdir /one/taken /two/taken && usleep 200000 && rmdir /one/taken /two/taken';
    const file = [
      'FROM busybox AS a',
      `RUN ${cache('one')} ${cache('two')} ${alone} && echo >/a`,
      'FROM busybox AS b',
      `RUN ${cache('two')} ${cache('one')} ${alone} && echo >/b`,
      'FROM busybox',
      'COPY --from=a /a /',
      'COPY --from=b /b /',
    ];

    const texts = await Promise.all([said(file), said(file)]);

    for (const text of texts) assert.match(text, /Successfully built/);
  });

  test('of a cache that is private get one that nobody else uses meanwhile', async () => {
    const step = (mine: string, other: string): string =>
      `RUN ${GATE} --mount=type=cache,id=p,target=/p,sharing=private mkdir /p/taken && ${both(mine, other)}; rmdir /p/taken`;
    const [first, second] = await Promise.all([
      said(['FROM busybox', step('p1', 'p2')]),
      said(['FROM busybox', step('p2', 'p1')]),
    ]);
    // Now that it is free, it is the same again.
    const kept = '--mount=type=cache,id=q,target=/q,sharing=private';
    const third = await said([`FROM busybox`, `RUN ${kept} touch /q/kept`, `RUN ${kept} ls /q`]);

    assert.match(first, /Successfully built/);
    assert.match(second, /Successfully built/);
    assert.match(third, /^kept$/m);
  });

  test('of a cache that is locked are not waited for by a client that has left', async () => {
    const cache = '--mount=type=cache,id=held,target=/c,sharing=locked';
    const first = said(['FROM busybox', `RUN ${GATE} ${cache} ${both('l1', 'l2')}`]);
    const waiting = await engine.stream('POST', '/build?nocache=1&networkmode=none', {
      body: contextOf({ Dockerfile: `FROM busybox\nRUN ${GATE} touch /gate/l0\nRUN ${cache} true\n` }),
      headers: { 'Content-Type': 'application/x-tar' },
    });
    let text = '';
    for await (const chunk of waiting as AsyncIterable<Buffer>) {
      text += chunk.toString();
      if (text.includes('Step 3/3')) break; // which closes the connection
    }

    const last = await said(['FROM busybox', `RUN ${GATE} ${both('l2', 'l1')}`]);

    assert.match(await first, /Successfully built/);
    assert.match(last, /Successfully built/);
    assert.match(await said(['FROM busybox', `RUN ${cache} true`]), /Successfully built/);
  });
});
