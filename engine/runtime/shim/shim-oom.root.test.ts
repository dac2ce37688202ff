import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';

import { OUTPUT, TestBundle } from '@gantry/testing/test-bundle.ts';

import { shimArguments } from './shim-options.ts';
import { SHIM_PROGRAM } from './shim-program.ts';

test('a process that takes more memory than allowed is told as out of memory', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['tail', '/dev/zero'], { memoryBytes: 16 * 1024 * 1024 });
  const told = new Promise<void>((resolve) => shim.onOom(resolve));
  await shim.start();

  const { exitCode, oomKilled } = await shim.exited;

  await told;
  assert.deepEqual({ exitCode, oomKilled }, { exitCode: 137, oomKilled: true });
});

test('an out-of-memory kill of another process of the container is told while it runs', async () => {
  await using bundle = new TestBundle();
  const script = 'tail /dev/zero; read x; exit 0';
  const shim = await bundle.shim(['sh', '-c', script], { memoryBytes: 16 * 1024 * 1024, openStdin: true });
  const told = new Promise<void>((resolve) => shim.onOom(resolve));
  await shim.start();

  await told;

  const socket = await bundle.attach(shim, { ...OUTPUT, stdin: true });
  socket.resume().end('\n');
  assert.equal((await shim.exited).oomKilled, true);
});

test('an out-of-memory kill is reported also to a daemon that asks later', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['tail', '/dev/zero'], { memoryBytes: 16 * 1024 * 1024 });
  await shim.start();
  await shim.exited;
  let told = 0;

  shim.onOom(() => (told += 1));

  assert.ok(told > 0);
});

// This machine may have version 1 only: the shim sees a folder in the place of the hierarchy, and a runtime whose
// process counts a kill there, as the kernel does.
test('on cgroup version 2 the change of its count is told', async () => {
  await using bundle = new TestBundle();
  mkdirSync(bundle.folder);
  const options = shimArguments({
    id: bundle.id,
    directory: bundle.folder,
    runtime: {
      path: bundle.runtime('[ "$7" = run ] || exit 0; sh -c "$PROCESS" >/dev/null & echo $! >pid'),
      root: bundle.state,
    },
    mode: { kind: 'container' },
    tty: false,
    openStdin: false,
    stdinOnce: false,
    cgroupPath: '/gantry-test',
  });
  const events = '/sys/fs/cgroup/gantry-test/memory.events';
  const mounts = 'mount -t tmpfs none /sys/fs/cgroup && mkdir /sys/fs/cgroup/gantry-test';
  const count = (kills: number): string =>
    `printf 'low 0\\noom ${kills}\\noom_kill ${kills}\\noom_group_kill 0\\n' >${events}`;
  const until = (file: string): string => `until [ -e ${bundle.directory}/${file} ]; do sleep 0.02; done`;
  const child = spawn(
    'unshare',
    ['--mount', 'sh', '-c', `${mounts} && ${count(0)} && exec "$@"`, 'sh', SHIM_PROGRAM, ...options],
    {
      env: { ...process.env, PROCESS: `${until('counted')}; ${count(1)}; ${until('told')}; kill -9 $$` },
      stdio: ['ignore', 'ignore', 'inherit', 'ignore', 'pipe'],
    },
  );
  const control = child.stdio[4] as Socket;

  control.write('start\n');
  const lines: string[] = [];
  for await (const line of createInterface(control)) {
    lines.push(line);
    if (line.startsWith('started')) writeFileSync(join(bundle.directory, 'counted'), '');
    if (line === 'oom') writeFileSync(join(bundle.directory, 'told'), '');
    if (line === 'gone') control.end('release\n');
  }

  const said = lines.map((line) => line.replace(/^(started) .*| \d{15,}$/, '$1'));
  assert.deepEqual(said.slice(1), ['waiting', 'done 0', 'started', 'oom', 'exited 137 9 1', 'gone', 'done 0']);
});
