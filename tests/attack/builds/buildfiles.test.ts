import assert from 'node:assert/strict';
import { test } from 'node:test';

import { applyChanges } from '@gantry/engine/buildfile/changes.ts';
import { expandToWords, expandWord, variablesOf } from '@gantry/engine/buildfile/expansion/expand.ts';
import { parseFile } from '@gantry/engine/buildfile/parse.ts';
import { readInstruction } from '@gantry/engine/buildfile/read-instruction.ts';
import { planOf } from '@gantry/engine/buildfile/stages.ts';
import { EngineError } from '@gantry/engine/lib/errors.ts';
import { EMPTY_CONFIG } from '@gantry/engine/records/run-config.ts';

import { Dice } from '../random.ts';

/** More by hand: `GANTRY_BUILDFILES=1000000 ./gantry test tests/attack`. */
const FILES = Number(process.env.GANTRY_BUILDFILES ?? 3000);
const SEED = Number(process.env.GANTRY_ATTACK_SEED ?? Date.now() % 1_000_000);
/** Limit for any file of this size, on a machine that is a hundred times slower than it should be. */
const MAX_MS = 60_000;

const KEYWORDS =
  'FROM RUN CMD ENTRYPOINT COPY ADD ENV ARG LABEL EXPOSE VOLUME USER WORKDIR ONBUILD STOPSIGNAL HEALTHCHECK SHELL MAINTAINER'.split(
    ' ',
  );
const PIECES = [
  'busybox',
  'scratch',
  ' AS x',
  '--from=x',
  '--from=0',
  '--chown=1:1',
  '--chmod=777',
  '--mount=type=cache,target=/c',
  '--mount=',
  '--',
  '--interval=1s',
  '--interval=-1h99999999999999999999s',
  'NONE',
  'CMD true',
  '["a","b"]',
  '["a",',
  '[',
  ']',
  '{"a":1}',
  '"',
  "'",
  '\\',
  '\\\n',
  '\\\r\n',
  '`\n',
  '$',
  '$a',
  '${a',
  '${a}',
  '${a:-b}',
  '${a:-${b:-${c}}}',
  '${a:?}',
  '${a##*/}',
  '${a//x/y}',
  '${a%%*}',
  '${${a}}',
  'a=b',
  'a="b c"',
  "a='b",
  '=',
  'a= ',
  '<<EOF',
  '<<-EOF',
  '<<"E O F"',
  '\nEOF\n',
  '<<',
  '<<<',
  '80/tcp',
  '1-65535/udp',
  '99999',
  '/',
  '..',
  '*',
  '#',
  '# escape=`',
  '# syntax=x',
  '#escape=\\',
  '\n',
  '\n\n',
  '\r\n',
  '\t',
  ' ',
  '\0',
  '\u{1F4A5}',
  '\ud800',
  '\ufeff',
  '\u0085',
  '\u2028',
  '__proto__',
  'constructor',
  '(a+)+$',
  'a'.repeat(300),
] as const;

function buildfile(dice: Dice): string {
  const lines = Array.from({ length: 1 + dice.upTo(12) }, () => {
    const parts = Array.from({ length: dice.upTo(8) }, () => piece(dice));
    return `${dice.chance(0.9) ? dice.pick(KEYWORDS) : piece(dice)}${dice.pick([' ', ' ', ' ', '', '\t', '\\\n'])}${parts.join(dice.pick([' ', ' ', '']))}`;
  });
  return `${dice.chance(0.8) ? 'FROM busybox\n' : ''}${lines.join('\n')}`;
}

function piece(dice: Dice): string {
  if (dice.chance(0.85)) return dice.pick(PIECES);
  return Buffer.from(Array.from({ length: dice.upTo(20) }, () => dice.upTo(256))).toString(
    dice.pick(['latin1', 'utf8']),
  );
}

/** Pieces of one character that have no end. */
const LONG = [
  '"',
  "'",
  '\\',
  '$',
  '${',
  '${a:-',
  '[',
  '["',
  '{',
  '<<E ',
  '\\\n',
  '#',
  ' ',
  '=',
  'a=',
  '\n',
  'a b ',
  '${a%',
  '${a//',
  '*',
  '-',
  '--x=',
  '\u0085',
];

/** All that is read of a file before anything of it is done. */
function read(text: string): void {
  const file = parseFile(text);
  attempt(() => planOf(file));
  for (const line of file.lines) {
    attempt(() => readInstruction(line));
    attempt(() => applyChanges([line.original], EMPTY_CONFIG));
    for (const word of line.args) {
      attempt(() => expandWord(word, variablesOf(['a=x/y', 'b=']), file.escape));
      attempt(() => expandToWords(word, variablesOf(['a=x y']), file.escape));
    }
  }
}

/** Taken or refused; anything else is a defect. */
function attempt(work: () => unknown): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof EngineError) || error.kind !== 'invalid') throw error;
    assert.doesNotMatch(error.message, /undefined|\[object|Cannot read/);
  }
}

function within(text: string, what: string): void {
  const begun = performance.now();
  try {
    attempt(() => read(text));
  } catch (error) {
    throw new Error(`${what}: ${JSON.stringify(text.slice(0, 2000))}`, { cause: error });
  }
  assert.ok(performance.now() - begun < MAX_MS, `${what} took ${performance.now() - begun} ms`);
}

test(`${FILES} random Buildfiles are read or refused as invalid`, (t) => {
  t.diagnostic(`GANTRY_ATTACK_SEED=${SEED}`);
  const dice = new Dice(SEED);
  for (let at = 0; at < FILES; at += 1) within(buildfile(dice), `file ${at} of seed ${SEED}`);
});

for (const [at, piecePart] of LONG.entries()) {
  test(`a file that repeats ${JSON.stringify(piecePart)} is read or refused as well (${at})`, () => {
    for (const keyword of ['RUN', 'ENV', 'CMD', 'COPY', 'LABEL', 'ONBUILD', 'EXPOSE', '']) {
      within(`FROM x\n${keyword} ${piecePart.repeat(60_000 / piecePart.length)}`, keyword);
      within(`FROM x\n${keyword} ${`${piecePart.repeat(30)}\n`.repeat(2000)}`, keyword);
    }
  });
}
