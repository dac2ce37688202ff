import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { test } from 'node:test';

import { OUTPUT, payload, TestBundle } from '@gantry/testing/test-bundle.ts';

import { newId } from '../../lib/ids.ts';
import { Shim } from './shim.ts';

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

test('a folder with a path longer than a socket address works', async () => {
  await using bundle = new TestBundle(`${'long'.repeat(30)}/${newId()}`);
  const shim = await bundle.shim(['sh', '-c', 'echo here']);
  const socket = await bundle.attach(shim, OUTPUT);

  await shim.start();

  assert.equal((await payload(socket)).toString(), 'here\n');
  assert.ok(shim.directory.length > 200);
});
