import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

const PROGRAM = process.env.GANTRY_RESOLVER ?? join(import.meta.dirname, '../../../build/gantry-resolver');
const TIMEOUT_MS = 60_000;

test('a resolver begins anew when its worker has died, and ends when its folder is gone', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-test-'));
  execFileSync(PROGRAM, [folder], { stdio: 'ignore' });
  const first = await workerOf(folder);
  process.kill(first, 'SIGKILL');
  const second = await workerOf(folder, first);
  assert.notEqual(second, first);

  rmSync(folder, { recursive: true });
  await ended(folder);
});

test('a resolver gives way to the one in its new folder', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-test-'));
  execFileSync(PROGRAM, [folder], { stdio: 'ignore' });
  const first = processesOf(folder).map(({ pid }) => pid);
  rmSync(folder, { recursive: true });
  mkdirSync(folder);

  execFileSync(PROGRAM, [folder], { stdio: 'ignore' });

  const second = processesOf(folder).flatMap(({ pid }) => (first.includes(pid) ? [] : [pid]));
  await ended(folder, first);
  assert.deepEqual([first.length, second.length], [2, 2]);
  assert.deepEqual(
    processesOf(folder).map(({ pid }) => pid),
    second,
  );
  rmSync(folder, { recursive: true });
  await ended(folder);
});

/** All processes of a folder have ended, or those listed. */
async function ended(folder: string, pids?: readonly number[]): Promise<void> {
  const left = (): unknown[] => processesOf(folder).filter(({ pid }) => pids?.includes(pid) ?? true);
  for (const until = Date.now() + TIMEOUT_MS; left().length > 0; await setTimeout(20)) {
    assert.ok(Date.now() < until, JSON.stringify(left()));
  }
}

/** Pid of the worker, the child of the two processes, when there are two and it is another than `before`. */
async function workerOf(folder: string, before = 0): Promise<number> {
  for (const until = Date.now() + TIMEOUT_MS; Date.now() < until; await setTimeout(20)) {
    const all = processesOf(folder);
    const worker = all.find(({ parent }) => all.some(({ pid }) => pid === parent));
    if (worker !== undefined && worker.pid !== before) return worker.pid;
  }
  throw new Error('there is no worker');
}

function processesOf(folder: string): { pid: number; parent: number }[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
      if (words[0] !== PROGRAM || words[1] !== folder) return [];
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      return [{ pid: Number(name), parent: Number(stat.slice(stat.lastIndexOf(')')).split(' ')[2]) }];
    } catch {
      return []; // it ended after it was listed
    }
  });
}
