import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

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

/** Runs these test files; their leftovers are the files that begin with `left`. `end` is sent once there is one `begun`. */
async function outcomeOf(
  files: Record<string, string>,
  { end, ...limits }: Partial<Record<'stallMs' | 'wholeMs', number>> & { end?: NodeJS.Signals } = {},
): Promise<Outcome & { printed: string }> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'gantry-runner-'));
  const names = Object.keys(files);
  for (const name of names) await writeFile(join(folder.path, name), HEAD + files[name]);
  const program = `
    import { readdirSync } from 'node:fs';
    import { runTestFiles } from ${JSON.stringify(join(import.meta.dirname, 'test-files.ts'))};
    const [root, files, limits] = JSON.parse(process.argv[2]);
    let printed = '';
    const leftovers = () => readdirSync(root).filter((name) => name.startsWith('left'));
    const outcome = await runTestFiles(root, files, { atOnce: 2, stallMs: 600_000, wholeMs: 600_000, ...limits, print: (said) => (printed += said), leftovers, leftoversTimeoutMs: 0 });
    console.log(JSON.stringify({ ...outcome, printed }));
  `;
  await writeFile(join(folder.path, 'run.mjs'), program);
  const words = [join(folder.path, 'run.mjs'), JSON.stringify([folder.path, names, limits])];
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  if (end !== undefined) {
    while (!existsSync(join(folder.path, 'begun'))) await sleep(10);
    child.kill(end);
  }
  return JSON.parse(await text(child.stdout)) as Outcome & { printed: string };
}

test('passed tests are counted, and nothing is reported', async () => {
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
  assert.deepEqual(told, ['FAILED: b.test.mjs: it ended with 3']);
});

test('more than twelve failed files are not tried again, and neither is the only file', async () => {
  const names = Array.from('abcdefghijklm', (name) => `${name}.test.mjs`);
  const many = await outcomeOf(Object.fromEntries(names.map((name) => [name, FAILS])));
  const one = await outcomeOf({ 'a.test.mjs': FAILS });

  assert.deepEqual([many.failed, many.told.length], [13, 13]);
  assert.doesNotMatch(many.printed + one.printed, /once more/);
  assert.equal(one.failed, 1);
});

test('the folder of a run is removed, but not beside leftovers: a mount of a failed file may be in it', async () => {
  const folder = 'console.log(`folder ${process.env.TMPDIR}.`);';
  const clean = await outcomeOf({ 'a.test.mjs': PASSES + folder });
  const left = await outcomeOf({
    'alone.test.mjs': `${ALONE}\nif (!existsSync(here('tried'))) { ${LEAVES} ${folder} }`,
    'busy.test.mjs': BUSY,
  });
  const folders = [clean, left].map(({ printed }) => /folder (\S+)\./.exec(printed)![1]!);

  assert.deepEqual(folders.map(existsSync), [false, true]);
  rmSync(folders[1]!, { recursive: true });
});

test('leftovers are a failure, but for those of a failed first try', async () => {
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

test('a file that hangs is ended with its children, whichever signals it catches, and reports its passed tests', async () => {
  const { passed, failed, told, printed } = await outcomeOf(
    {
      'a.test.mjs': `process.on('SIGTERM', () => {}); test('fine', () => {});
        test('hangs', async () => { for (;;) await setTimeout(1000); });`,
    },
    { stallMs: 10_000 },
  );

  assert.deepEqual([passed, failed], [1, 1]);
  assert.deepEqual(told, ['FAILED: a.test.mjs: it was ended after 10 s without progress']);
  assert.match(printed, /✔ fine/);
});

test('a file that takes longer than that and ends a test now and then goes on', async () => {
  const steps = Array.from({ length: 7 }, (_, n) => `test('step ${n}', async () => { await setTimeout(1000); });`);
  const { passed, told } = await outcomeOf({ 'a.test.mjs': steps.join('\n') }, { stallMs: 5000 });

  assert.deepEqual([passed, told], [7, []]);
});

test('a process that a test leaves behind does not hold up the run', async () => {
  const started = performance.now();
  const { passed, failed, printed } = await outcomeOf({
    'a.test.mjs': `import { spawn } from 'node:child_process'; test('leaves', () => {
      const child = spawn('sleep', ['120'], { stdio: 'inherit', detached: true });
      child.unref();
      console.log('left', child.pid);
    });`,
  });
  process.kill(Number(/left (\d+)/.exec(printed)![1]));

  assert.deepEqual([passed, failed], [1, 0]);
  assert.ok(performance.now() - started < 110_000);
});

test('when the time of the whole run is over, the rest fails and is named', async () => {
  const hangs = `test('hangs', async () => { for (;;) await setTimeout(1000); });`;
  const { failed, told } = await outcomeOf(
    { 'a.test.mjs': hangs, 'b.test.mjs': hangs, 'c.test.mjs': PASSES },
    { wholeMs: 5000 },
  );

  assert.equal(failed, 3);
  assert.deepEqual(told, [
    'FAILED: a.test.mjs: the whole run was ended after 5 s',
    'FAILED: b.test.mjs: the whole run was ended after 5 s',
    'FAILED: c.test.mjs: not begun: the whole run was ended after 5 s',
  ]);
});

test('a run that is ended by Ctrl-C or SIGTERM ends its files, and says so', async () => {
  for (const end of ['SIGINT', 'SIGTERM'] as const) {
    const { failed, told, printed } = await outcomeOf(
      {
        'a.test.mjs': `test('hangs', async () => {
          console.log('own', process.pid);
          writeFileSync(here('begun'), '');
          for (;;) await setTimeout(1000);
        });`,
      },
      { end },
    );

    assert.deepEqual([failed, told], [1, [`FAILED: a.test.mjs: the whole run was ended by ${end}`]]);
    assert.throws(() => process.kill(Number(/own (\d+)/.exec(printed)![1]), 0), { code: 'ESRCH' });
  }
});
