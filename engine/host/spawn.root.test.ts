import assert from 'node:assert/strict';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

import { connectedSockets, reapWhenEnded, spawnInSession } from './spawn.ts';

/** Returns the output of a shell to the descriptor 4, which is a socket of ours. */
async function said(
  script: string,
  more: ReadonlyMap<number, number> = new Map(),
): Promise<{ pid: number; out: string }> {
  const [ours, theirs] = connectedSockets();
  const descriptors = new Map([[4, theirs], ...more]);
  const pid = spawnInSession('/bin/sh', ['-c', script], { PATH: '/bin:/usr/bin', MARK: 'x y' }, descriptors);
  closeSync(theirs);
  return { pid, out: await text(new Socket({ fd: ours })) };
}

test('a program gets its words, its environment and a session of its own, and nothing of ours', async () => {
  const ours = openSync('/dev/null', 'r');
  const { pid, out } = await said('echo "$MARK" >&4; cut -d" " -f6 /proc/$$/stat >&4; ls /proc/$$/fd | xargs >&4');
  reapWhenEnded(pid);
  closeSync(ours);

  const [mark, session, fds = ''] = out.split('\n');
  assert.deepEqual([mark, session], ['x y', String(pid)]);
  assert.equal(fds.split(' ').includes(String(ours)), false);
});

test('descriptors find their places even when they are in the place of another', async () => {
  const place = mkdtempSync(join(tmpdir(), 'gantry-spawn-'));
  const first = openSync(join(place, 'first'), 'w');
  const second = openSync(join(place, 'second'), 'w');
  try {
    const crossed = new Map([
      [first, second],
      [second, first],
    ]);
    const { pid } = await said(`echo one >/proc/self/fd/${first}; echo two >/proc/self/fd/${second}`, crossed);
    reapWhenEnded(pid);

    assert.equal(readFileSync(join(place, 'second'), 'utf8'), 'one\n');
    assert.equal(readFileSync(join(place, 'first'), 'utf8'), 'two\n');
  } finally {
    closeSync(first);
    closeSync(second);
    rmSync(place, { recursive: true });
  }
});

test('an ended child is reaped: at once when it has ended, else when it does', async () => {
  const { pid, out } = await said('exec 4>&-; sleep 0.1');
  assert.equal(out, '');
  assert.equal(existsSync(`/proc/${pid}`), true);

  reapWhenEnded(pid);

  while (existsSync(`/proc/${pid}`)) await new Promise((resolve) => process.once('SIGCHLD', resolve));
});

test('a missing program is an error that names it', () => {
  assert.throws(() => spawnInSession('/no/such', [], {}, new Map()), {
    code: 'ENOENT',
    message: /posix_spawn\("\/no\/such"\)/,
  });
});
