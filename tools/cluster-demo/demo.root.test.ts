import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';

test('the demo is interrupted while a machine is off: it ends with nothing left behind', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gantry-test-demo-'));
  const demo = spawn(process.execPath, [join(import.meta.dirname, 'main.ts')], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(demo, 'exit');
  let errors = '';
  demo.stderr.on('data', (piece: Buffer) => (errors += piece.toString()));
  const said: string[] = [];
  for await (const line of createInterface(demo.stdout)) {
    said.push(line);
    if (line.includes('is seen as down')) demo.kill('SIGINT');
  }

  assert.deepEqual([await ended, errors], [[130, null], '']);
  const text = said.join('\n');
  for (const shown of [
    /host1 ready, leader/,
    / 5 tasks run: \d on host1, \d on host2, \d on host3/,
    /\d+ requests, all answered, by 5 tasks:/,
    /after [\d.]+ s it is seen as down; \d+ requests, /,
    /Interrupted: removing what was started\.$/,
  ]) {
    assert.match(text, shown);
  }
  assert.deepEqual([processesBelow(folder), mountsBelow(folder), cgroupsOf(text)], [[], [], []]);
  await rmdir(folder); // fails when there is anything in it
});

function processesBelow(folder: string): string[] {
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandOf(pid).includes(folder));
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return ''; // it ended after it was listed
  }
}

function mountsBelow(folder: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(folder));
}

/** Those of the containers that have told their host names, which are the beginnings of their ids. */
function cgroupsOf(text: string): string[] {
  const ids = [...text.matchAll(/from ([0-9a-f]{12})/g)].map(([, id]) => id!);
  assert.ok(ids.length >= 5);
  return ids.flatMap((id) => globSync(`/sys/fs/cgroup/{,*/,*/*/}*${id}*`));
}
