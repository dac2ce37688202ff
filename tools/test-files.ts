import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { type FileResult, type Run, runTestFile } from './test-file.ts';

type Options = Omit<Run, 'stop' | 'folder'> &
  Readonly<{
    atOnce: number;
    /** Whether a file mostly waits, so that it leaves its core to others. */
    waits?: (file: string) => boolean;
    /** The number of such files beside the others. */
    waitingAtOnce?: number;
    /** The limit of the whole run: a run that hangs would not report what hangs. */
    wholeMs: number;
    /** Lists the things on the machine that tests have to remove; `folder` is the run's temporary folder. */
    leftovers: (folder: string) => readonly string[];
    /** The time that leftovers have to disappear. */
    leftoversTimeoutMs?: number;
  }>;

/** The result, and the defects to report at the end, including those that do not fail the run. */
export type Outcome = Readonly<{
  passed: number;
  failed: number;
  skipped: number;
  told: readonly string[];
  /** The longest files first. */
  seconds: readonly Readonly<{ file: string; seconds: number }>[];
}>;

/** With more failed files the cause is not a slow moment. */
const MAX_TRIED_AGAIN = 12;
const MAX_TRIES_ALONE = 2;

/**
 * Runs the files, some at once. Those that failed are run again, alone, after all others, when they are few: a file that
 * passes then, at the first or second try, has failed by chance, which is reported as a defect of the test.
 */
export async function runTestFiles(root: string, files: readonly string[], options: Options): Promise<Outcome> {
  const { atOnce, print, leftovers, wholeMs, waits = () => false, waitingAtOnce = 0 } = options;
  const stop = stopAfter(wholeMs);
  const folder = await mkdtemp(join(tmpdir(), 'gt-')); // short: paths of sockets have 107 bytes at most
  await chmod(folder, 0o755); // tests run programs as other users
  const run = { ...options, stop, folder };
  const before = new Set(leftovers(folder));
  const results = new Map<string, FileResult>();
  const [waiting, working] = [files.filter(waits), files.filter((file) => !waits(file))];
  const runAll = async (first: string[], then: string[]): Promise<void> => {
    for (let file = first.shift() ?? then.shift(); file !== undefined; file = first.shift() ?? then.shift())
      results.set(file, await runTestFile(root, file, run));
  };
  await Promise.all([
    ...Array.from({ length: atOnce }, async () => await runAll(working, waiting)),
    ...Array.from({ length: waitingAtOnce }, async () => await runAll(waiting, [])),
  ]);

  const told: string[] = [];
  let isClean = true;
  const unlucky = [...results.values()].filter(({ failed }) => failed.length > 0);
  if (files.length > 1 && unlucky.length > 0 && unlucky.length <= MAX_TRIED_AGAIN && !stop.aborted) {
    // A failed test does not clean up: its leftovers are not a second failure.
    for (const left of await findStaying(before, run)) {
      told.push(`left behind beside a failure: ${left}`);
      before.add(left);
      isClean = false;
    }
    for (const { file, failed } of unlucky) {
      for (let tries = 0; tries < MAX_TRIES_ALONE && results.get(file)!.failed.length > 0; tries += 1) {
        print?.(`\nonce more, alone: ${file}\n`);
        results.set(file, await runTestFile(root, file, run));
      }
      if (results.get(file)!.failed.length === 0)
        told.push(`failed beside others, passed alone: ${file}: ${failed.join('; ')}`);
    }
  }
  const all = files.flatMap((file) => results.get(file) ?? []);
  for (const { file, failed } of all) if (failed.length > 0) told.push(`FAILED: ${file}: ${failed.join('; ')}`);
  for (const { file, skipped } of all) told.push(...skipped.map((name) => `SKIPPED: ${name} (${file})`));
  const left = await findStaying(before, run);
  told.push(...left.map((each) => `FAILED: left behind: ${each}`));
  // A mount that is left could lead the removal anywhere.
  if (isClean && left.length === 0) await rm(folder, { recursive: true, force: true });
  return {
    passed: all.reduce((sum, { passed }) => sum + passed, 0),
    failed: all.reduce((sum, { failed }) => sum + failed.length, left.length),
    skipped: all.reduce((sum, { skipped }) => sum + skipped.length, 0),
    told,
    seconds: all.toSorted((a, b) => b.seconds - a.seconds),
  };
}

/** Files run in process groups of their own: a signal for the run, as Ctrl-C, does not reach them. A second one ends it at once. */
function stopAfter(wholeMs: number): AbortSignal {
  const stop = new AbortController();
  setTimeout(() => stop.abort(`the whole run was ended after ${wholeMs / 1000} s`), wholeMs).unref();
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.once(signal, () => stop.abort(`the whole run was ended by ${signal}`));
  return stop.signal;
}

/** New leftovers that do not disappear, unlike those that the kernel or an ending process removes a moment later. */
async function findStaying(
  before: ReadonlySet<string>,
  { leftovers, folder, leftoversTimeoutMs = 30_000 }: Options & Pick<Run, 'folder'>,
): Promise<string[]> {
  const deadline = performance.now() + leftoversTimeoutMs;
  for (;;) {
    const left = leftovers(folder).filter((each) => !before.has(each));
    if (left.length === 0 || performance.now() > deadline) return left;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}
