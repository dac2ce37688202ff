import assert from 'node:assert/strict';
import { test } from 'node:test';

import { OUTPUT, payload, TestBundle } from '@gantry/testing/test-bundle.ts';

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

test('background processes of an exec delay its end by two seconds at most', async () => {
  await using bundle = new TestBundle();
  const container = await bundle.shim(['sleep', '1000']);
  await container.start();
  const shim = await bundle.exec(['sh', '-c', '(sleep 0.1; echo late; sleep 1000) & echo early']);
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
