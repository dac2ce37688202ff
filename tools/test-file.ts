import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { watch } from 'node:fs';
import { mkdtempDisposable, open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { TestResult } from './test-results.ts';

/** The result of one file's tests; failed and skipped ones by their names. */
export type FileResult = Readonly<{
  file: string;
  passed: number;
  failed: readonly string[];
  skipped: readonly string[];
  seconds: number;
}>;

/**
 * `stallMs`: a file that prints nothing and ends no test for this time is ended. `stop` ends it sooner. `folder`: the
 * temporary folder of all files. Without `print` the output appears at once.
 */
export type Run = Readonly<{ print?: (said: string) => void; stallMs: number; stop?: AbortSignal; folder: string }>;

/**
 * Runs one file in a process group of its own, and prints its output at the end, or as it comes.
 *
 * Output for the end goes into a file: a pipe would stay open as long as any process that a test has left behind, and
 * the run with it.
 */
export async function runTestFile(root: string, file: string, run: Run): Promise<FileResult> {
  if (run.stop?.aborted === true)
    return { file, passed: 0, failed: [`not begun: ${run.stop.reason}`], skipped: [], seconds: 0 };
  const started = performance.now();
  await using folder = await mkdtempDisposable(join(run.folder, 'file-'));
  const [saidPath, resultsPath] = [join(folder.path, 'said'), join(folder.path, 'results')];
  const reporters = [
    ...['--test-reporter', join(import.meta.dirname, 'test-reporter.ts'), '--test-reporter-destination', 'stdout'],
    ...['--test-reporter', join(import.meta.dirname, 'test-results.ts'), '--test-reporter-destination', resultsPath],
  ];
  await using said = await open(saidPath, 'w');
  await writeFile(resultsPath, ''); // the process may end before it has a reporter
  const child = spawn(process.execPath, [...reporters, join(root, file)], {
    cwd: root,
    detached: true,
    env: { ...process.env, TMPDIR: run.folder },
    stdio: run.print === undefined ? ['ignore', 'inherit', 'inherit'] : ['ignore', said.fd, said.fd],
  });
  const ending = await endOf(child, run, folder.path);
  run.print?.(await readFile(saidPath, 'utf8'));
  const seconds = (performance.now() - started) / 1000;
  return { file, seconds, ...counted(await resultsOf(resultsPath), ending) };
}

/** The reason of a bad end of the process. `folder` has the files that grow with its progress. */
async function endOf(
  child: ReturnType<typeof spawn>,
  { stallMs, stop }: Run,
  folder: string,
): Promise<string | undefined> {
  const stalled = new AbortController();
  const timer = setTimeout(() => stalled.abort(`it was ended after ${stallMs / 1000} s without progress`), stallMs);
  const watcher = watch(folder, () => timer.refresh());
  const signal = stop === undefined ? stalled.signal : AbortSignal.any([stalled.signal, stop]);
  const kill = (): void => killGroup(child.pid);
  signal.addEventListener('abort', kill);
  const [code, endedBy] = (await once(child, 'exit')) as [number | null, string | null];
  signal.removeEventListener('abort', kill);
  clearTimeout(timer);
  watcher.close();
  if (signal.aborted) return String(signal.reason);
  return code === 0 ? undefined : `it ended with ${code ?? endedBy}`;
}

function killGroup(pid: number | undefined): void {
  if (pid !== undefined) process.kill(-pid, 'SIGKILL');
}

async function resultsOf(path: string): Promise<TestResult[]> {
  const lines = (await readFile(path, 'utf8')).split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as TestResult);
}

function counted(results: readonly TestResult[], ending: string | undefined): Omit<FileResult, 'file' | 'seconds'> {
  const named = (as: TestResult['as']): string[] => results.filter((each) => each.as === as).map(({ name }) => name);
  const failed = named('failed');
  // A file with failed tests ends with 1 anyhow.
  if (ending !== undefined && (failed.length === 0 || ending !== 'it ended with 1')) failed.push(ending);
  return { passed: named('passed').length, failed, skipped: named('skipped') };
}
