import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseFile } from '../../../buildfile/parse.ts';
import { planOf } from '../../../buildfile/stages.ts';
import { EMPTY_CONFIG } from '../../../records/run-config.ts';
import { evaluateInSteps, type Target } from './evaluate.ts';
import { lintResult } from './lint-result.ts';
import { checkOptions, Linter } from './linter.ts';
import { outlineResult } from './outline.ts';

const MEGABYTE = 1024 * 1024;

/** The result of the checks, and the longest time between two of their steps. */
function check(text: string): { target: Target; linter: Linter; longestMs: number } {
  const plan = planOf(parseFile(text, 'buildkit'));
  const linter = new Linter(checkOptions(''));
  const work = evaluateInSteps({
    ...{ file: plan.file, plan, linter, given: {}, automatic: {}, target: '', allStages: true },
    ...{ configOf: () => EMPTY_CONFIG, isIgnored: undefined },
  });
  let longestMs = 0;
  for (;;) {
    const { user } = process.cpuUsage();
    const step = work.next();
    longestMs = Math.max(longestMs, (process.cpuUsage().user - user) / 1000);
    if (step.done === true) return { target: step.value, linter, longestMs };
  }
}

function many(count: number, line: (at: number) => string): string {
  return Array.from({ length: count }, (_, at) => line(at)).join('');
}

test('variables that each stage takes over from another one are refused above 16 MiB', () => {
  const file = `FROM busybox AS s0\n${many(10, (line) => `ENV ${many(1000, (at) => `v${line}_${at}=1 `)}\n`)}`;

  assert.throws(
    () => check(file + many(400, (at) => `FROM s${at} AS s${at + 1}\n`)),
    /variables of all stages take more/,
  );
  assert.equal(check(`${file}FROM s0 AS s1\nFROM s1\n`).linter.warnings.length, 0);
});

test('values that contain others are refused above 16 MiB', () => {
  const file = `FROM busybox\nARG a=${'x'.repeat(60_000)}\n${many(1000, (at) => `ARG b${at}=\${a}\n`)}`;

  assert.throws(() => check(file), /variables of all stages take more/);
});

test('thousands of mistyped variables are told as a thousand warnings, with a hundred suggestions', () => {
  const known = many(1000, (at) => `${'n'.repeat(25)}${at}=1 `);
  const words = many(1800, (at) => `$${'n'.repeat(26)}${at} `);
  const { linter, longestMs } = check(`FROM busybox\nENV ${known}\nUSER ${words}\n`);

  assert.equal(linter.warnings.length, 1000);
  assert.ok(linter.warnings.filter(({ detail }) => detail.includes('did you mean')).length <= 100);
  assert.ok(longestMs < 5000, `${longestMs} ms at once`);
});

test('an excerpt of a long line is not printed for each of its warnings', () => {
  const text = `FROM busybox\nUSER ${many(5000, (at) => `$u${at} `)}${'x'.repeat(30_000)}\n`;
  const { linter } = check(text);

  const result = lintResult(linter.warnings, { name: 'Dockerfile', text }, undefined).get('result.txt')!;
  assert.ok(result.length < 2 * MEGABYTE, `${result.length} bytes`);
  assert.equal(result.toString().split('WARNING: ').length - 1, linter.warnings.length);
});

test('a long value does not widen the rows of others', () => {
  const text = `FROM busybox\nARG long=${'x'.repeat(60_000)}\n${many(1000, (at) => `ARG a${at}\n`)}`;
  const { target } = check(text);

  const result = outlineResult(target, text).get('result.txt')!;
  assert.ok(result.length < MEGABYTE, `${result.length} bytes`);
  assert.ok(result.includes('a999 '));
});
