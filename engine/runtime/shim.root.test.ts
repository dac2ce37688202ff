import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

import { newId } from '../lib/ids.ts';
import { shimArguments } from './shim-options.ts';
import { SHIM_PROGRAM } from './shim-program.ts';
import { Shim, ShimLost } from './shim.ts';
import { OUTPUT, payload, TestBundle } from './test-bundle.ts';

test('a client that attached before the start gets both streams, framed, and the exit code', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'echo out; echo err >&2; exit 7']);
  const socket = await bundle.attach(shim, OUTPUT);

  await shim.start();

  assert.equal((await payload(socket)).length, 8);
  assert.equal((await shim.exited).exitCode, 7);
  assert.equal(Shim.readStatus(shim.directory)?.exitCode, 7);
});

test('a signal ends the process with 128 and its number', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sleep', '1000']);
  await shim.start();

  await shim.signal(9);

  const { exitCode, signal } = await shim.exited;
  assert.deepEqual({ exitCode, signal }, { exitCode: 137, signal: 9 });
});

test('a signal to a process that does not run is a conflict', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['true']);

  await assert.rejects(shim.signal(9), { kind: 'conflict', message: 'the process does not run' });
});

test('the times of start and end are in order', async () => {
  await using bundle = new TestBundle();
  const before = Temporal.Now.instant();
  const shim = await bundle.shim(['true']);

  const { startedAt } = await shim.start();
  const { finishedAt } = await shim.exited;

  const times = [before, startedAt, finishedAt, Temporal.Now.instant()];
  assert.deepEqual(
    times.toSorted((a, b) => Temporal.Instant.compare(a, b)),
    times,
  );
});

test('when the container is gone, the runtime knows nothing of it, and its folder can be used again', async () => {
  await using bundle = new TestBundle();
  const first = await bundle.shim(['sh', '-c', 'seq 200000; exit 1']);
  const slow = await bundle.attach(first, OUTPUT);
  await first.start();
  await first.exited;
  first.release();
  await first.gone;
  assert.deepEqual(readdirSync(bundle.state), []);

  const second = await bundle.shim(['sh', '-c', 'exit 2']);
  await second.start();
  assert.equal((await second.exited).exitCode, 2);

  assert.ok((await payload(slow)).toString().endsWith('\n200000\n'), 'the first one still serves its slow client');
});

test('a new daemon finds the shim again, commands it, and learns of the exit', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sleep', '1000']);
  const { pid, startedAt } = await shim.start();
  await shim.abandon(); // of one that runs this is only a disconnect

  await using again = {
    shim: await Shim.reconnect(shim.directory),
    [Symbol.asyncDispose]: async () => await again.shim?.abandon(),
  };

  assert.equal(again.shim?.pid, shim.pid);
  assert.equal(again.shim.phase, 'started');
  assert.deepEqual(await again.shim.started, { pid, startedAt });
  await again.shim.signal(9);
  assert.equal((await again.shim.exited).exitCode, 137);
});

test('an exit while no daemon is there leaves a status, and nothing else', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sleep', '1000']);
  const { pid } = await shim.start();
  const watcher = connect(join(bundle.folder, 'shim.sock')); // says nothing: the shim does not wait for it
  await once(watcher, 'connect');
  await shim.abandon();

  process.kill(pid, 'SIGTERM');
  process.kill(pid, 'SIGKILL');
  await text(watcher);

  assert.equal(await Shim.reconnect(shim.directory), undefined);
  assert.equal(Shim.readStatus(shim.directory)?.exitCode, 137);
  assert.deepEqual(readdirSync(bundle.state), []);
  assert.ok(!existsSync(`/sys/fs/cgroup/memory/gantry-test/${bundle.id}`));
});

test('a shim whose daemon dies before the start leaves', async () => {
  await using bundle = new TestBundle();
  mkdirSync(bundle.folder);
  const options = {
    id: bundle.id,
    directory: bundle.folder,
    runtime: { path: 'runc', root: bundle.state },
    mode: { kind: 'container' },
    tty: false,
    openStdin: true,
    stdinOnce: false,
    log: { driver: 'none' },
  } as const;
  const child = spawn(SHIM_PROGRAM, shimArguments(options), {
    stdio: ['ignore', 'ignore', 'inherit', 'ignore', 'pipe'],
  });
  const ended = once(child, 'exit');
  const control = child.stdio[4];
  assert.ok(control);
  await once(control, 'data');

  control.destroy();

  assert.deepEqual(await ended, [0, null]);
  assert.deepEqual(readdirSync(bundle.folder), []);
});

test('an abandoned shim leaves nothing in its folder', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['true'], { tty: true });

  await shim.abandon();

  assert.ok(!existsSync(join(bundle.folder, 'shim.sock')));
  await assert.rejects(shim.exited, ShimLost);
});

test('a shim that is killed is told as lost', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sleep', '1000']);
  await shim.start();

  process.kill(shim.pid, 'SIGKILL');

  await assert.rejects(shim.exited, ShimLost);
  assert.ok(shim.wasLost);
});

test('the signals that end a daemon do not end the shim', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sleep', '1000']);
  await shim.start();

  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT'] as const) process.kill(shim.pid, name);

  await shim.signal(9);
  assert.equal((await shim.exited).exitCode, 137);
});

test('the process starts with no signal blocked or ignored', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['cat', '/proc/self/status']);
  const socket = await bundle.attach(shim, OUTPUT);

  await shim.start();

  const status = (await payload(socket)).toString();
  assert.match(status, /^SigBlk:\t0+$/m);
  assert.match(status, /^SigIgn:\t0+$/m);
});

test('the process has only its three descriptors', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'for fd in 3 4 5 6 7; do readlink /proc/self/fd/$fd; done']);
  const socket = await bundle.attach(shim, OUTPUT);

  await shim.start();

  assert.equal((await payload(socket)).toString(), '');
});

test('a connection of another version is refused with the reason', async () => {
  await using bundle = new TestBundle();
  await bundle.shim(['true']);
  const socket = connect(join(bundle.folder, 'shim.sock'));

  socket.write('GANTRY 2 control\n');

  assert.equal(await text(socket), 'refused this shim speaks version 1 only\n');
});

test('a folder whose path is longer than a socket address may be works', async () => {
  await using bundle = new TestBundle(`${'long'.repeat(30)}/${newId()}`);
  const shim = await bundle.shim(['sh', '-c', 'echo here']);
  const socket = await bundle.attach(shim, OUTPUT);

  await shim.start();

  assert.equal((await payload(socket)).toString(), 'here\n');
  await shim.abandon();
  assert.ok(shim.directory.length > 200);
});

test('an exec has its own streams and exit code', async () => {
  await using bundle = new TestBundle();
  const container = await bundle.shim(['sleep', '1000']);
  await container.start();
  const shim = await bundle.exec(['sh', '-c', 'cat; exit 5'], { openStdin: true });
  const socket = await bundle.attach(shim, { ...OUTPUT, stdin: true });
  await shim.start();

  socket.end('hello');

  assert.equal((await payload(socket)).toString(), 'hello');
  assert.equal((await shim.exited).exitCode, 5);
  await shim.gone;
});

test('what an exec leaves in the background holds its end up for two seconds at most', async () => {
  await using bundle = new TestBundle();
  const container = await bundle.shim(['sleep', '1000']);
  await container.start();
  const shim = await bundle.exec(['sh', '-c', '(sleep 0.5; echo late; sleep 1000) & echo early']);
  const socket = await bundle.attach(shim, OUTPUT);

  await shim.start();

  assert.equal((await payload(socket)).toString(), 'early\nlate\n');
  assert.equal((await shim.exited).exitCode, 0);
});

test('an exec of a container that ends is ended', async () => {
  await using bundle = new TestBundle();
  const container = await bundle.shim(['sleep', '1000']);
  await container.start();
  const shim = await bundle.exec(['sleep', '1000']);
  await shim.start();

  await container.signal(9);

  assert.equal((await shim.exited).exitCode, 137);
});

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
