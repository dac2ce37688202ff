import assert from 'node:assert/strict';
import { once } from 'node:events';
import { buffer, text } from 'node:stream/consumers';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { unframe } from '@gantry/client/frames.ts';
import { OUTPUT, payload, seen, TestBundle } from '@gantry/testing/test-bundle.ts';

const MEGABYTE = 1024 * 1024;
const BOTH = { ...OUTPUT, stdin: true };

test('a half-close ends stdin only, and output goes on', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'cat; echo after'], { openStdin: true, stdinOnce: true });
  const socket = await bundle.attach(shim, BOTH);
  await shim.start();

  socket.end('through\n');

  assert.deepEqual(unframe(await buffer(socket)), { stdout: 'through\nafter\n', stderr: '' });
});

test('stdin that was sent and ended before the start is kept', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['cat'], { openStdin: true, stdinOnce: true });
  const socket = await bundle.attach(shim, BOTH);
  const sent = 'x'.repeat(MEGABYTE);
  socket.end(sent);

  await shim.start();

  assert.equal((await payload(socket)).toString(), sent);
});

test('StdinOnce: stdin ends with the last client that had it', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['cat'], { openStdin: true, stdinOnce: true });
  const first = await bundle.attach(shim, BOTH);
  const second = await bundle.attach(shim, BOTH);
  await shim.start();
  first.end('one ');
  await seen(second, 'one');

  second.end('two');

  assert.equal((await payload(first)).toString(), 'one two');
  assert.equal((await shim.exited).exitCode, 0);
});

test('without StdinOnce stdin stays open when its client leaves', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'read a; read b; echo $a $b'], { openStdin: true });
  await shim.start();
  const first = await bundle.attach(shim, { ...BOTH, stdout: false, stderr: false });
  first.end('one\n');
  await buffer(first);
  const second = await bundle.attach(shim, BOTH);

  second.write('two\n');

  assert.equal(unframe(await buffer(second)).stdout, 'one two\n');
});

for (const options of [{}, { tty: true }, { tty: true, stdinOnce: true }]) {
  test(`a half-close ends the session of that client only: ${JSON.stringify(options)}`, async () => {
    await using bundle = new TestBundle();
    const shim = await bundle.shim(['sh', '-c', 'read a; read b; echo got $a $b'], { openStdin: true, ...options });
    const first = await bundle.attach(shim, BOTH);
    const second = await bundle.attach(shim, BOTH);
    await shim.start();

    first.end('one\n');
    await buffer(first);
    second.write('two\n');

    assert.match((await buffer(second)).toString(), /got one two\r?\n$/);
    assert.equal((await shim.exited).exitCode, 0);
  });
}

test('a client that is still writing when the process ends loses no output', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'head -c 10; seq 50000'], { openStdin: true, stdinOnce: true });
  const socket = await bundle.attach(shim, BOTH);
  for (let i = 0; i < 100; i += 1) socket.write(Buffer.alloc(100_000, 'y'));
  await shim.start();
  await shim.exited;

  assert.ok((await payload(socket)).toString().endsWith('\n50000\n'));
});

test('a terminal gets the size that was set before the start, and is raw', async () => {
  await using bundle = new TestBundle();
  // The shim sizes the terminal when the runtime sends it, on a slow machine a moment after the process began.
  const sized = ['sh', '-c', 'until stty size 2>/dev/null; do sleep 0.1; done'];
  const shim = await bundle.shim(sized, { tty: true, openStdin: true });
  await shim.resize(101, 33);
  const socket = await bundle.attach(shim, BOTH);

  await shim.start();

  assert.equal(await text(socket), '33 101\r\n');
});

test('a terminal takes input and a new size while its process runs', async () => {
  await using bundle = new TestBundle();
  const script = 'read x; stty size; exit 4';
  const shim = await bundle.shim(['sh', '-c', script], { tty: true, openStdin: true, stdinOnce: true });
  const socket = await bundle.attach(shim, BOTH);
  await shim.start();
  await shim.resize(80, 25);

  socket.write('go\n');

  assert.equal(await text(socket), 'go\r\n25 80\r\n');
  assert.equal((await shim.exited).exitCode, 4);
});

test('an exec has a terminal of its own', async () => {
  await using bundle = new TestBundle();
  const container = await bundle.shim(['sleep', '1000']);
  await container.start();
  const shim = await bundle.exec(['sh', '-c', 'read x; stty size'], { tty: true, openStdin: true });
  const socket = await bundle.attach(shim, BOTH);
  await shim.start();
  await shim.resize(70, 20);

  socket.write('\n');

  assert.equal(await text(socket), '\r\n20 70\r\n');
});

test('a slow reader gets every byte of 60 binary MB, and holds up neither the container nor a fast one', async () => {
  await using bundle = new TestBundle();
  const script = 'dd if=/dev/urandom of=/data bs=1M count=15 2>/dev/null; for n in 1 2 3 4; do cat /data; done';
  const shim = await bundle.shim(['sh', '-c', script]);
  const slow = await bundle.attach(shim, OUTPUT);
  const fast = await bundle.attach(shim, OUTPUT);
  await shim.start();

  const whole = await payload(fast);
  await shim.exited;

  assert.equal(whole.length, 60 * MEGABYTE);
  assert.ok(whole.equals(await payload(slow)));
});

test('a slow reader of a terminal gets every byte', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['seq', '300000'], { tty: true });
  const slow = await bundle.attach(shim, OUTPUT);
  await shim.start();
  await shim.exited;

  const lines = (await text(slow)).split('\r\n');

  assert.equal(lines.length, 300_001);
  assert.deepEqual(
    lines.slice(0, 300_000),
    Array.from({ length: 300_000 }, (_, index) => `${index + 1}`),
  );
});

test('a slow reader finds both streams of a line that was half written when it fell behind', async () => {
  await using bundle = new TestBundle();
  const script = 'printf one; printf uno >&2; read x; seq 200000; echo two; echo due >&2';
  const shim = await bundle.shim(['sh', '-c', script], { openStdin: true });
  const slow = await bundle.attach(shim, BOTH);
  await shim.start();
  const fast = await bundle.attach(shim, { ...OUTPUT, logs: true });
  await seen(fast, 'uno');
  slow.write('\n');
  fast.resume();
  await shim.exited;

  const { stdout, stderr } = unframe(await buffer(slow));

  assert.equal(stderr, 'unodue\n');
  assert.ok(stdout.startsWith('one1\n2\n') && stdout.endsWith('\n200000\ntwo\n'));
});

test('a client that asked for one stream gets no other', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'seq 100000; seq 100000 >&2']);
  const slow = await bundle.attach(shim, { ...OUTPUT, stdout: false });
  await shim.start();
  await shim.exited;

  const { stdout, stderr } = unframe(await buffer(slow));

  assert.equal(stdout, '');
  assert.ok(stderr.startsWith('1\n2\n') && stderr.endsWith('\n100000\n'));
});

test('without a log the container waits for its slowest reader, until that one leaves', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['head', '-c', String(20 * MEGABYTE), '/dev/zero'], { log: false });
  const slow = await bundle.attach(shim, OUTPUT);
  const fast = await bundle.attach(shim, OUTPUT);
  let received = 0;
  fast.on('data', (chunk: Buffer) => (received += chunk.length)).resume();
  await shim.start();
  // Nothing is reported for a waiting container.
  const stands = async (): Promise<boolean> => {
    const before = received;
    await setTimeout(300);
    return before > 0 && received === before;
  };
  while (!(await stands())) continue;
  assert.ok(received < 2 * MEGABYTE, `${received} bytes`);

  slow.destroy();

  await once(fast, 'end');
  assert.ok(received >= 20 * MEGABYTE, `${received} bytes`);
});

test('a reader that never reads does not hold up the end, and has everything afterwards', async () => {
  await using bundle = new TestBundle();
  const size = 500_000; // more than a client's buffer and the socket's
  const shim = await bundle.shim(['head', '-c', String(size), '/dev/zero'], { log: false });
  const never = await bundle.attach(shim, OUTPUT);
  await shim.start();

  await shim.exited;

  assert.equal((await payload(never)).length, size);
});

test('a terminal that its process closes, and opens again, is read on', async () => {
  await using bundle = new TestBundle();
  const script = 'tty=$(readlink /proc/self/fd/0); exec <&- >&- 2>&-; sleep 0.2; exec >$tty; seq 2000; sleep 1000';
  const shim = await bundle.shim(['sh', '-c', script], { tty: true });
  const socket = await bundle.attach(shim, OUTPUT);
  await shim.start();

  await seen(socket, '\r\n2000\r\n');

  await shim.signal(9);
  assert.equal((await shim.exited).exitCode, 137);
});
