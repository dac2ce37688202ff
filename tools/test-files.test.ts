import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

import type { Outcome } from './test-files.ts';

const HEAD = `
  import { test } from 'node:test';
  import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
  import { setTimeout } from 'node:timers/promises';
  const here = (name) => new URL(name, import.meta.url);
`;
const PASSES = `test('fine', () => {}); test('fine as well', () => {});`;
const FAILS = `test('fine', () => {}); test('wrong', () => { throw new Error('always'); });`;
/** Fails beside another one, of which it waits to be there. */
const ALONE = `test('fine', () => {});
test('only alone', async () => {
  if (existsSync(here('tried'))) { if (existsSync(here('busy'))) throw new Error('not alone'); return; }
  writeFileSync(here('tried'), '');
  while (!existsSync(here('busy'))) await setTimeout(10);
  throw new Error('beside another one');
});`;
const BUSY = `test('busy', async () => {
  writeFileSync(here('busy'), '');
  while (!existsSync(here('tried'))) await setTimeout(10);
  await setTimeout(500);
  rmSync(here('busy'));
});`;
const LEAVES = `writeFileSync(here('left-' + Date.now()), '');`;

/** What becomes of these test files; what they leave are the files that begin with `left`. */
async function outcomeOf(files: Record<string, string>): Promise<Outcome & { printed: string }> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'gantry-runner-'));
  const names = Object.keys(files);
  for (const name of names) await writeFile(join(folder.path, name), HEAD + files[name]);
  const program = `
    import { readdirSync } from 'node:fs';
    import { runTestFiles } from ${JSON.stringify(join(import.meta.dirname, 'test-files.ts'))};
    const [root, files] = JSON.parse(process.argv[2]);
    let printed = '';
    const leftovers = () => readdirSync(root).filter((name) => name.startsWith('left'));
    const outcome = await runTestFiles(root, files, { atOnce: 2, timeoutMs: 600_000, print: (said) => (printed += said), leftovers, patienceMs: 0 });
    console.log(JSON.stringify({ ...outcome, printed }));
  `;
  // Within a test Node runs no others, and it finds out by this variable.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  await writeFile(join(folder.path, 'run.mjs'), program);
  const words = [join(folder.path, 'run.mjs'), JSON.stringify([folder.path, names])];
  const child = spawn(process.execPath, words, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  return JSON.parse(await text(child.stdout)) as Outcome & { printed: string };
}

test('what passes is counted, and nothing is told', async () => {
  const { passed, failed, skipped, told, printed } = await outcomeOf({ 'a.test.mjs': PASSES, 'b.test.mjs': PASSES });

  assert.deepEqual([passed, failed, skipped, told], [4, 0, 0, []]);
  assert.match(printed, /✔ fine as well/);
});

test('a file that fails beside others and passes alone is told, and its tests count as passed', async () => {
  const { passed, failed, told, printed } = await outcomeOf({
    'alone.test.mjs': ALONE,
    'busy.test.mjs': BUSY,
    'c.test.mjs': PASSES,
  });

  assert.deepEqual([passed, failed], [5, 0]);
  assert.deepEqual(told, ['failed beside others, passed alone: alone.test.mjs: only alone']);
  assert.match(printed, /beside another one/);
  assert.match(printed, /once more, alone: alone\.test\.mjs/);
});

test('a file that fails twice has failed', async () => {
  const { passed, failed, told } = await outcomeOf({ 'a.test.mjs': PASSES, 'b.test.mjs': FAILS });

  assert.deepEqual([passed, failed, told], [3, 1, ['FAILED: b.test.mjs: wrong']]);
});

test('a file that ends before its tests has failed', async () => {
  const { failed, told } = await outcomeOf({ 'a.test.mjs': PASSES, 'b.test.mjs': `process.exit(3);` });

  assert.equal(failed, 1);
  assert.match(told.join(), /^FAILED: b\.test\.mjs: .*b\.test\.mjs$/);
});

test('more than three failed files are not tried again, and neither is the only file', async () => {
  const names = ['a', 'b', 'c', 'd'].map((name) => `${name}.test.mjs`);
  const many = await outcomeOf(Object.fromEntries(names.map((name) => [name, FAILS])));
  const one = await outcomeOf({ 'a.test.mjs': FAILS });

  assert.deepEqual([many.failed, many.told.length], [4, 4]);
  assert.doesNotMatch(many.printed + one.printed, /once more/);
  assert.equal(one.failed, 1);
});

test('what is left behind is a failure, but for what a failed first try leaves', async () => {
  const left = await outcomeOf({ 'a.test.mjs': PASSES + LEAVES, 'b.test.mjs': PASSES });
  const beside = await outcomeOf({
    'alone.test.mjs': `${ALONE}\nif (!existsSync(here('tried'))) { ${LEAVES} }`,
    'busy.test.mjs': BUSY,
  });
  const again = await outcomeOf({ 'alone.test.mjs': `${ALONE}\n${LEAVES}`, 'busy.test.mjs': BUSY });

  assert.deepEqual([left.passed, left.failed], [4, 1]);
  assert.match(left.told.join(), /^FAILED: left behind: left-\d+$/);
  assert.deepEqual([beside.passed, beside.failed], [3, 0]);
  assert.match(beside.told.join('\n'), /^left behind beside a failure: left-\d+\nfailed beside others, passed alone/);
  assert.equal(again.failed, 1);
  assert.match(again.told.at(-1)!, /^FAILED: left behind/);
});

test('a skipped test is named', async () => {
  const { skipped, told } = await outcomeOf({ 'a.test.mjs': `${PASSES} test.skip('later', () => {});` });

  assert.deepEqual([skipped, told], [1, ['SKIPPED: later (a.test.mjs)']]);
});
