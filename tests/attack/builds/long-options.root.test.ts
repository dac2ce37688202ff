import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { assertSmallGrowth } from '@gantry/testing/memory/resident-memory.ts';
import { answeredMeanwhile } from '@gantry/testing/streams/answered-meanwhile.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf } from '../../build/compared.ts';

const MAX_GROWTH_MB = 64;
const COUNT = 2000;

const listOf = (count: number, each: (at: number) => string): string[] =>
  Array.from({ length: count }, (_, at) => each(at));
const json = (value: unknown): string => encodeURIComponent(JSON.stringify(value));
const valuesOf = (count: number): string =>
  json(Object.fromEntries(listOf(count, (at) => `key${at}`).map((key) => [key, `value of ${key}`])));
const settings = (line: (at: number) => string): string => ['FROM busybox', ...listOf(COUNT, line), ''].join('\n');

const TOO_LARGE = /the settings and histories of all steps has more than/;
const PLAIN = 'FROM busybox\nENV a=b\n';

/** Options and lines by which each step of a build repeats all before it, or each of which costs a look or a commit. */
const ROWS: readonly (readonly [name: string, query: string, file: string, answer: RegExp])[] = [
  ['1,000 labels of the client', `labels=${valuesOf(1000)}`, PLAIN, TOO_LARGE],
  ['100 labels of the client', `labels=${valuesOf(100)}`, PLAIN, /Successfully built/],
  ['10,000 build arguments', `buildargs=${valuesOf(10_000)}`, PLAIN, /were not consumed/],
  ['2,000 build arguments that are used', `buildargs=${valuesOf(COUNT)}`, settings((at) => `ARG key${at}`), TOO_LARGE],
  ['2,000 lines of LABEL', '', settings((at) => `LABEL key${at}=value${at}`), TOO_LARGE],
  ['2,000 lines of ENV', '', settings((at) => `ENV key${at}=value${at}`), TOO_LARGE],
  ['1,000 names', listOf(1000, (at) => `t=name${at}`).join('&'), PLAIN, /Successfully tagged name999:latest/],
  ['1,001 names', listOf(1001, (at) => `t=name${at}`).join('&'), PLAIN, /the list of tags has more than 1,000 names/],
  [
    '50,000 images as a cache',
    `cachefrom=${json(listOf(50_000, (at) => `name${at}`))}`,
    PLAIN,
    /the list of cachefrom has more than 100 names/,
  ],
];

suite('builds with long lists of options', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    await build(engine, 'nocache=1', contextOf({ Dockerfile: 'FROM busybox\nLABEL a=b\n' })); // its functions are loaded now
  });
  after(async () => await engine[Symbol.asyncDispose]());

  for (const [name, query, file, answer] of ROWS) {
    test(`${name}: cost less than 64 MB, and others are answered meanwhile`, async () => {
      await assertSmallGrowth(engine.pid, MAX_GROWTH_MB, async () => {
        const { result } = await answeredMeanwhile(
          engine,
          async () => await build(engine, `nocache=1&${query}`, contextOf({ Dockerfile: file })),
        );
        const { message, lines } = result;
        const said = message ?? lines.map(({ stream = '', error = '' }) => stream + error).join('');
        assert.match(said, answer);
      });
    });
  }
});
