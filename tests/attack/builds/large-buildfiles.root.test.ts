import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { answeredMeanwhile } from '@gantry/testing/streams/answered-meanwhile.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf, type Files } from '../../build/compared.ts';

/** `answers`: of so many other requests at least, while the build goes on. */
type Row = Readonly<{ what: string; files: Files; refusal: RegExp; answers?: number }>;

const listOf = (count: number, each: (at: number) => string, separator = ''): string =>
  Array.from({ length: count }, (_, at) => each(at)).join(separator);
/** Doubles the value of `A` eleven times, to a megabyte. */
const LONG_VALUE = `ARG A=${'x'.repeat(512)}\n${'ARG A=$A$A\n'.repeat(10)}`;

const rows: readonly Row[] = [
  {
    what: 'one ENV of 400 variables of 512 KB',
    files: { Dockerfile: `FROM busybox\n${LONG_VALUE}ENV ${listOf(400, (at) => `a${at}=$A`, ' ')}\n` },
    refusal: /the result is longer than 1048576 characters/,
  },
  {
    what: '6,000 ranges of all ports',
    files: { Dockerfile: `FROM busybox\n${'EXPOSE 1-65535\n'.repeat(6000)}` },
    refusal: /EXPOSE has more than 20,000 ports/,
  },
  {
    what: 'ENV of 40,000 pairs',
    files: { Dockerfile: `FROM busybox\nENV ${listOf(40_000, (at) => `a${at}=1`, ' \\\n ')}\n` },
    refusal: /the instruction of line 2 has more than 262,144 characters/,
  },
  {
    what: 'several ENV of 30,000 pairs together',
    files: {
      Dockerfile: `FROM busybox\n${listOf(10, (part) => `ENV ${listOf(3000, (at) => `a${part}_${at}=1`, ' \\\n ')}\n`)}`,
    },
    refusal: /the list of settings of the image has more than 20,000 entries/,
  },
  {
    what: '4,000 stages',
    files: { Dockerfile: listOf(4000, (at) => `FROM busybox AS s${at}\nRUN true\n`) },
    refusal: /the file has more than 500 stages/,
  },
  {
    what: '9,000 settings, each of whose images repeats those before',
    files: { Dockerfile: `FROM busybox\n${listOf(9000, (at) => `ENV a=${at}\n`)}` },
    refusal: /the list of the settings and histories of all steps has more than 12,582,912 characters/,
    answers: 5,
  },
  {
    what: 'labels of megabytes together',
    files: { Dockerfile: `FROM busybox\n${listOf(50, (at) => `LABEL a${at}=${'x'.repeat(60_000)}\n`)}` },
    refusal: /more than (?:2,097,152|12,582,912) characters/,
  },
  {
    what: 'a file of 8 MB',
    files: { Dockerfile: `FROM busybox\n${'LABEL a=b\n'.repeat(800_000)}` },
    refusal: /Dockerfile has more than 4,194,304 bytes/,
  },
  {
    what: 'arguments that grow with each line',
    files: { Dockerfile: `FROM busybox\n${LONG_VALUE}${listOf(400, (at) => `ARG b${at}=$A${at}\n`)}` },
    refusal: /has more than (?:4,194,304|12,582,912) characters/,
  },
  {
    what: 'a chain of 490 stages that fails at its end',
    files: {
      Dockerfile: `${listOf(490, (at) => `FROM ${at === 0 ? 'busybox' : `s${at - 1}`} AS s${at}\n`)}COPY missing /\n`,
    },
    refusal: /missing: file does not exist/,
  },
  {
    what: 'a here-document whose variables make it huge',
    files: { Dockerfile: `FROM busybox\n${LONG_VALUE}COPY <<EOF /x\n${'$A\n'.repeat(1000)}EOF\n` },
    refusal: /the result is longer than 1048576 characters/,
  },
];

suite('a Buildfile of great size', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => (engine = await TestEngine.start({ flags: ['--bridge=none'] })));
  after(async () => await engine[Symbol.asyncDispose]());

  for (const { what, files, refusal, answers: expected = 1 } of rows) {
    test(`is refused, and others are answered meanwhile: ${what}`, async () => {
      const { result, answers } = await answeredMeanwhile(
        engine,
        async () => await build(engine, '', contextOf(files)),
      );

      const { message, lines } = result;
      assert.match(message ?? lines.find(({ error }) => error !== undefined)?.error ?? 'it is built', refusal);
      assert.ok(answers >= expected, `${answers} other requests were answered`);
    });
  }
});
