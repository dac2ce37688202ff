import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';

test('the demo is interrupted: it ends with nothing left behind', async () => {
  const text = await interrupted([], 'Hello from');
  assert.match(text, /Interrupted: removing what was started\./);
  assert.doesNotMatch(text, /What to try next/);
  assert.equal(idsOf(text).length, 1);
  assert.deepEqual(cgroupsOf(text), []);
});

test('the demo of a cluster is interrupted while a machine is off: it ends with nothing left behind', async () => {
  const text = await interrupted(['cluster'], 'is seen as down');
  for (const shown of [
    /host1 ready, leader/,
    / 5 tasks run: \d on host1, \d on host2, \d on host3/,
    /\d+ requests, all answered, by 5 tasks:/,
    /after [\d.]+ s it is seen as down; \d+ requests, /,
    /Interrupted: removing what was started\.$/,
  ]) {
    assert.match(text, shown);
  }
  assert.ok(idsOf(text).length >= 5);
  assert.deepEqual(cgroupsOf(text), []);
});

/** Several times what a demo takes beside much load. */
const MAX_MS = 400_000;

/** Returns the output of a demo that gets SIGINT at a line with these words. Fails when something of it is left. */
async function interrupted(words: readonly string[], at: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gantry-test-demo-'));
  const demo = spawn(process.execPath, [join(import.meta.dirname, 'main.ts'), ...words], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(demo, 'exit');
  let errors = '';
  demo.stderr.on('data', (piece: Buffer) => (errors += piece.toString()));
  const said: string[] = [];
  let hanging: string | undefined;
  const late = setTimeout(() => (hanging = endAll(demo.pid!, folder)), MAX_MS);
  for await (const line of createInterface(demo.stdout)) {
    said.push(line);
    if (line.includes(at)) demo.kill('SIGINT');
  }
  clearTimeout(late);
  if (hanging !== undefined) throw new Error(`it has not ended. It said:\n${said.join('\n')}\n${errors}\n${hanging}`);
  assert.deepEqual([await ended, errors], [[130, null], '']);
  assert.deepEqual([processesBelow(folder), mountsBelow(folder)], [[], []]);
  await rmdir(folder); // fails when there is anything in it
  return said.join('\n');
}

/** Kills a demo that hangs, with all that it has started; those processes, and the ends of the daemons' logs. */
function endAll(demo: number, folder: string): string {
  const lines = execFileSync('ps', ['-ww', '-eo', 'pid,ppid,stat,wchan:24,args'], { encoding: 'utf8' }).split('\n');
  const left = new Set([demo]);
  const shown = lines.filter((line) => {
    const [pid = 0, parent = 0] = line.trim().split(/ +/).map(Number);
    if (!left.has(pid) && !left.has(parent) && !line.includes(folder)) return false;
    left.add(pid);
    return true;
  });
  const logs = globSync(`${folder}/*/log`).map((path) => `${path}:\n${readFileSync(path, 'utf8').slice(-2000)}`);
  for (const pid of left) kill(pid);
  return [...shown, ...logs].join('\n');
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

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

/** Those of the containers that have told their host names. */
function cgroupsOf(text: string): string[] {
  return idsOf(text).flatMap((id) => globSync(`/sys/fs/cgroup/{,*/,*/*/}*${id}*`));
}

/** Host names are the beginnings of the containers' ids. */
function idsOf(text: string): string[] {
  return [...text.matchAll(/from ([0-9a-f]{12})/g)].map(([, id]) => id!);
}
