import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { test } from 'node:test';

import { unframe } from '@gantry/client/frames.ts';

import { Shim, ShimLost } from './shim.ts';
import { StartFailed } from './start-failure.ts';
import { TestBundle } from './test-bundle.ts';

const output = { stdin: false, stdout: true, stderr: true, logs: false, stream: true };

async function payload(socket: Socket): Promise<Buffer> {
  const framed = await buffer(socket);
  const pieces = [];
  for (let offset = 0; offset < framed.length;) {
    const size = framed.readUInt32BE(offset + 4);
    pieces.push(framed.subarray(offset + 8, offset + 8 + size));
    offset += 8 + size;
  }
  return Buffer.concat(pieces);
}

test('a client that attached before the start gets both streams, framed, and the exit code', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'echo out; echo err >&2; exit 7']);
  const socket = await shim.attach(output);

  await shim.start();

  assert.deepEqual(unframe(await buffer(socket)), { stdout: 'out\n', stderr: 'err\n' });
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

for (const [name, args, exitCode] of [
  ['a missing command is 127', ['/nowhere'], 127],
  ['a file that is no program is 126', ['/noexec'], 126],
] as const) {
  test(name, async () => {
    await using bundle = new TestBundle();
    const shim = await bundle.shim(args);

    const failure = await shim.start().catch((error: unknown) => error);

    assert.ok(failure instanceof StartFailed);
    assert.equal(failure.exitCode, exitCode);
    await shim.gone;
  });
}

test('a half-close ends stdin only, and output goes on', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'cat; echo after'], { openStdin: true, stdinOnce: true });
  const socket = await shim.attach({ ...output, stdin: true });
  await shim.start();

  socket.end('through\n');

  assert.deepEqual(unframe(await buffer(socket)), { stdout: 'through\nafter\n', stderr: '' });
});

test('without StdinOnce stdin stays open when its client leaves', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'read a; read b; echo $a $b'], { openStdin: true });
  await shim.start();
  const first = await shim.attach({ ...output, stdin: true, stdout: false, stderr: false });
  first.end('one\n');
  await buffer(first).catch(() => undefined);
  const second = await shim.attach({ ...output, stdin: true });

  second.write('two\n');

  assert.equal(unframe(await buffer(second)).stdout, 'one two\n');
});

test('a terminal has the size that was set before the start, and is raw', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['stty', 'size'], { tty: true, openStdin: true });
  await shim.resize(101, 33);
  const socket = await shim.attach({ ...output, stdin: true });

  await shim.start();

  assert.equal(await text(socket), '33 101\r\n');
});

test('a slow reader gets every byte of 40 binary MB, and holds up neither the container nor a fast one', async () => {
  await using bundle = new TestBundle();
  const script = 'dd if=/dev/urandom of=/data bs=1M count=10 2>/dev/null; for n in 1 2 3 4; do cat /data; done';
  const shim = await bundle.shim(['sh', '-c', script]);
  const slow = await shim.attach(output);
  const fast = await shim.attach(output);
  slow.pause();
  await shim.start();

  const whole = await payload(fast);
  await shim.exited;

  assert.equal(whole.length, 40 * 1024 * 1024);
  assert.ok(whole.equals(await payload(slow)));
});

test('rotation keeps the wanted files, and a slow reader is caught up across them', async () => {
  await using bundle = new TestBundle();
  const log = { driver: 'json-file' as const, maxBytes: 100_000, maxFiles: 3 };
  const shim = await bundle.shim(['seq', '100000'], { log });
  const slow = await shim.attach(output);
  slow.pause();
  await shim.start();
  await shim.exited;

  const lines = unframe(await buffer(slow))
    .stdout.trimEnd()
    .split('\n');

  assert.equal(lines.length, 100_000);
  assert.equal(lines.at(-1), '100000');
  for (const name of ['', '.1', '.2']) assert.ok(readFileSync(bundle.logPath + name).length <= 100_200);
});

test('logs and stream together have everything once', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', 'seq 1000; printf part; read x; echo ial; seq 1000'], {
    openStdin: true,
  });
  const first = await shim.attach(output);
  await shim.start();
  await new Promise<void>((resolve) => {
    let seen = '';
    first.resume().on('data', (chunk: Buffer) => {
      seen += chunk.toString('latin1');
      if (seen.includes('part')) resolve();
    });
  });

  const late = await shim.attach({ ...output, logs: true, stdin: true });
  late.write('\n');

  const numbers = Array.from({ length: 1000 }, (_, index) => `${index + 1}\n`).join('');
  assert.equal((await payload(late)).toString(), `${numbers}partial\n${numbers}`);
});

test('without a log the container waits for its reader, and nothing is lost', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['dd', 'if=/dev/zero', 'bs=1M', 'count=20'], { log: { driver: 'none' } });
  const socket = await shim.attach({ ...output, stderr: false });
  socket.pause();
  await shim.start();

  assert.equal((await payload(socket)).length, 20 * 1024 * 1024);
});

test('a process that takes more memory than allowed is told as out of memory', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['tail', '/dev/zero'], { memoryBytes: 16 * 1024 * 1024 });
  await shim.start();

  const { exitCode, oomKilled } = await shim.exited;

  assert.deepEqual({ exitCode, oomKilled }, { exitCode: 137, oomKilled: true });
});

test('an exec has its own streams and exit code', async () => {
  await using bundle = new TestBundle();
  const container = await bundle.shim(['sleep', '1000']);
  await container.start();
  const shim = await bundle.exec(['sh', '-c', 'cat; exit 5'], { openStdin: true });
  const socket = await shim.attach({ ...output, stdin: true });
  await shim.start();

  socket.end('hello');

  assert.equal(unframe(await buffer(socket)).stdout, 'hello');
  assert.equal((await shim.exited).exitCode, 5);
});

test('a new daemon finds the shim again and learns of the exit', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sleep', '1000']);
  const { pid } = await shim.start();

  const again = await Shim.reconnect(shim.directory);

  assert.ok(again);
  assert.equal((await again.started).pid, pid);
  await again.signal(15);
  await again.signal(9);
  assert.equal((await again.exited).exitCode, 137);
});

test('a shim that is killed is told as lost', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sleep', '1000']);
  const { pid } = await shim.start();

  process.kill(shim.pid, 'SIGKILL');

  await assert.rejects(shim.exited, ShimLost);
  process.kill(pid, 'SIGKILL');
});

test('lines are logged as docker writes them', async () => {
  await using bundle = new TestBundle();
  const shim = await bundle.shim(['sh', '-c', String.raw`printf 'a"\\<é\t\001\n'; printf '\377x\n'; printf end >&2`]);
  await shim.start();
  await shim.exited;

  const lines = readFileSync(bundle.logPath, 'utf8').trimEnd().split('\n');

  const time = String.raw`"time":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`;
  assert.match(
    lines[0]!,
    new RegExp(String.raw`^\{"log":"a\\"\\\\\\u003cé\\u0009\\u0001\\n","stream":"stdout",${time}\}$`),
  );
  assert.match(lines[1]!, new RegExp(String.raw`^\{"log":"\\ufffdx\\n","stream":"stdout",${time},"raw":"/3gK"\}$`));
  assert.match(lines[2]!, new RegExp(String.raw`^\{"log":"end","stream":"stderr",${time}\}$`));
});
