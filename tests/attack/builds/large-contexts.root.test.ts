import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { after, before, suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { assertSmallGrowth } from '@gantry/testing/memory/resident-memory.ts';
import { answeredMeanwhile } from '@gantry/testing/streams/answered-meanwhile.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf } from '../../build/compared.ts';

/** `answers`: of so many other requests at least, while the build goes on. */
type Row = Readonly<{ what: string; context: () => Buffer; answer: RegExp; answers?: number }>;

const listOf = (count: number, each: (at: number) => string, separator: string): string =>
  Array.from({ length: count }, (_, at) => each(at)).join(separator);
const filesOf = (count: number, nameOf: (at: number) => string): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [nameOf(at), 'x']));

const rows: readonly Row[] = [
  {
    what: '500 ignore patterns of many stars over 300 deep files',
    context: () =>
      contextOf({
        Dockerfile: 'FROM busybox\nCOPY . /x\n',
        '.dockerignore': listOf(500, (at) => `${'**/a*'.repeat(30)}${at}`, '\n'),
        ...filesOf(300, (at) => `${'a/'.repeat(60)}${'a'.repeat(60)}${at}`),
      }),
    answer: /the patterns of the ignore file match too much/,
  },
  {
    what: '1,000 plain ignore patterns over 1,000 files',
    context: () =>
      contextOf({
        Dockerfile: 'FROM busybox\nCOPY . /x\n',
        '.dockerignore': `**/*\n${listOf(1000, (at) => `!*/f*${at}z`, '\n')}\n!d1/f1x`,
        ...filesOf(1000, (at) => `d${at % 10}/f${at}x`),
      }),
    answer: /Successfully built/,
  },
  {
    what: '10,001 ignore patterns',
    context: () => contextOf({ Dockerfile: 'FROM busybox\n', '.dockerignore': listOf(10_001, (at) => `a${at}`, '\n') }),
    answer: /the ignore file has more than 10000 patterns/,
  },
  {
    what: 'COPY of 2,000 patterns over 1,000 files',
    context: () =>
      contextOf({
        Dockerfile: `FROM busybox\nCOPY ${listOf(2000, (at) => `f${at % 7}*x${at}`, ' \\\n ')} /x/\n`,
        ...filesOf(1000, (at) => `f${at}x`),
      }),
    answer: /no source files were specified/,
    answers: 5,
  },
  {
    what: 'COPY of a folder 2,000 times, with 200 files in it',
    context: () =>
      contextOf({
        Dockerfile: `FROM busybox\nCOPY ${listOf(2000, () => 'd', ' \\\n ')} /x\n`,
        ...filesOf(200, (at) => `d/f${at}`),
      }),
    answer: /the destination must be a directory/,
    answers: 5,
  },
  {
    what: 'a folder that files replace 2,000 times, beside 20,000 others',
    context: () => {
      const tar = new TarWriter().add({ name: 'Dockerfile', content: 'FROM busybox\nLABEL a=b\n' });
      for (let at = 0; at < 20_000; at += 1) tar.add({ name: `e/${at}` });
      for (let at = 0; at < 2000; at += 1) tar.add({ name: 'd/x' }).add({ name: 'd', content: `${at}` });
      return gzipSync(tar.end(), { level: 1 });
    },
    answer: /Successfully built/,
  },
];

suite('a context of great size', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => (engine = await TestEngine.start({ flags: ['--bridge=none'] })));
  after(async () => await engine[Symbol.asyncDispose]());

  for (const { what, context, answer, answers: expected = 1 } of rows) {
    test(`is built or refused, and others are answered meanwhile: ${what}`, async () => {
      const body = context();

      const { result, answers } = await answeredMeanwhile(engine, async () => await build(engine, '', body));

      const { message, lines } = result;
      assert.match(message ?? lines.map(({ stream = '', error = '' }) => stream + error).join(''), answer);
      assert.ok(answers >= expected, `${answers} answers`);
    });
  }

  test('one of 70,000 symbolic links is refused: their targets count', async () => {
    const tar = new TarWriter().add({ name: 'Dockerfile', content: 'FROM busybox\n' });
    for (let at = 0; at < 70_000; at += 1) tar.add({ name: `link${at}`, type: 'symlink', linkName: 'x'.repeat(90) });

    const { message } = await build(engine, '', gzipSync(tar.end(), { level: 1 }));

    assert.match(message ?? '', /the context has too many entries/);
  });

  for (const [count, folders, copy, limit, answer] of [
    [120_000, 100, 'COPY . /', 64, /the context has too many entries/],
    [30_000, 1, 'COPY . /x', 48, /Successfully built/],
  ] as const) {
    test(`one of ${count} files in ${folders} folders costs less than ${limit} MB: ${copy.replaceAll('\n', '; ')}`, async () => {
      const tar = new TarWriter().add({ name: 'Dockerfile', content: `FROM busybox\n${copy}\n` });
      for (let at = 0; at < count; at += 1) tar.add({ name: `d${at % folders}/file${at}`, content: 'x' });
      const body = gzipSync(tar.end(), { level: 1 });
      assert.match((await build(engine, '', contextOf({ Dockerfile: 'FROM x y z\n' }))).message ?? '', /FROM/);
      await assertSmallGrowth(engine.pid, limit, async () => {
        const { result } = await answeredMeanwhile(engine, async () => await build(engine, 'nocache=1', body));
        const { message, lines } = result;
        assert.match(message ?? lines.map(({ stream = '', error = '' }) => stream + error).join(''), answer);
      });
    });
  }

  test('a COPY ends with its client while its sources are looked for', async () => {
    const file = `FROM busybox\nCOPY ${listOf(20_000, () => 'd', ' \\\n ')} /x\n`;
    const context = contextOf({ Dockerfile: file, ...filesOf(2000, (at) => `d/f${at}`) });
    const stream = await engine.stream('POST', '/build', {
      body: context,
      headers: { 'Content-Type': 'application/x-tar' },
    });
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      if (chunk.toString().includes('Step 2/2')) break; // which closes the connection
    }

    const builds = async (): Promise<number> => (await namesIn(engine, 'builds')).length;
    await eventually('the build has ended', async () => (await builds()) === 0);
  });

  test('a COPY ends with its client while files are copied', async () => {
    const context = contextOf({
      Dockerfile: 'FROM busybox\nCOPY d /d\n',
      ...Object.fromEntries(Array.from({ length: 6 }, (_, at) => [`d/${at}`, { content: Buffer.alloc(50_000_000) }])),
    });
    const before = (await engine.get<unknown[]>('/images/json?all=1')).body.length;
    const client = new AbortController();
    const options = { headers: { 'Content-Type': 'application/x-tar' }, signal: client.signal };
    const building = engine.post('/build', context, options).catch(() => undefined);
    while ((await namesIn(engine, 'writable')).length === 0) await engine.get('/_ping');

    client.abort();

    await building;
    await eventually('the build has ended', async () => (await namesIn(engine, 'builds')).length === 0);
    assert.equal((await engine.get<unknown[]>('/images/json?all=1')).body.length, before);
  });
});

async function namesIn(engine: TestEngine, folder: string): Promise<string[]> {
  return (await readdir(`${engine.dataRoot}/${folder}`)).filter((name) => name !== '.trash');
}
