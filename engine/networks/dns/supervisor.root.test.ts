import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

const PROGRAM = process.env.GANTRY_RESOLVER ?? join(import.meta.dirname, '../../../build/gantry-resolver');
const DEADLINE_MS = 60_000;

test('a resolver whose worker has died begins anew, and ends when its folder is gone', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-test-'));
  execFileSync(PROGRAM, [folder], { stdio: 'ignore' });
  const first = await workerOf(folder);
  process.kill(first, 'SIGKILL');
  const second = await workerOf(folder, first);
  assert.notEqual(second, first);

  rmSync(folder, { recursive: true });
  process.kill(second, 'SIGKILL');

  const until = Date.now() + DEADLINE_MS;
  while (processesOf(folder).length > 0 && Date.now() < until) await setTimeout(20);
  assert.deepEqual(processesOf(folder), []);
});

/** Of the two processes the one that is the other's child, when there are two and it is another than `before`. */
async function workerOf(folder: string, before = 0): Promise<number> {
  for (const until = Date.now() + DEADLINE_MS; Date.now() < until; await setTimeout(20)) {
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
