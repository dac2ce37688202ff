import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { test } from 'node:test';

import { readWhole } from './read-whole.ts';

const MB = 1024 * 1024;

/** A server whose answer has 2,000,000 chunks of one byte. */
const FLOOD = `
  const { once } = require('node:events');
  require('node:net').createServer(async (socket) => {
    socket.on('error', () => socket.destroy()).resume();
    socket.write('HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n');
    const text = '1\\r\\n \\r\\n'.repeat(100_000);
    for (let n = 0; n < 20; n += 1) if (!socket.write(text)) await once(socket, 'drain');
    socket.end('0\\r\\n\\r\\n');
  }).listen(0, '127.0.0.1', function () { process.send(this.address().port); });
`;

test('an answer in chunks of one byte costs little more than its bytes', async (t) => {
  const server = fork('-e', [FLOOD], { execPath: process.execPath, execArgv: [] });
  t.after(() => server.kill());
  const [port] = (await once(server, 'message')) as [number];
  const [answer] = (await once(get({ host: '127.0.0.1', port, agent: false }), 'response')) as [IncomingMessage];
  const before = process.memoryUsage().rss;
  let highest = before;
  let pieces = 0;
  answer.on('data', () => {
    pieces += 1;
    if (pieces % 10_000 === 0) highest = Math.max(highest, process.memoryUsage().rss);
  });

  const read = await readWhole(answer, 4 * MB);

  assert.equal(read?.length, 2_000_000);
  assert.ok(highest - before < 64 * MB, `${highest - before}`);
});

test('a longer stream is paused, and not ended', async () => {
  const stream = Readable.from([Buffer.alloc(10), Buffer.alloc(10), Buffer.alloc(10)]);

  const read = await readWhole(stream, 15);

  assert.equal(read, undefined);
  assert.ok(stream.isPaused() && !stream.destroyed);
});

test('the error of a stream is passed on, also of one that failed before', async () => {
  const stream = new Readable({ read: () => undefined });
  stream.on('error', () => undefined).destroy(new Error('broken'));

  await assert.rejects(readWhole(stream, 15), /broken/);
  await assert.rejects(readWhole(stream, 15), /broken/);
});

test('an empty stream has no bytes', async () => {
  assert.equal((await readWhole(Readable.from([]), 15))?.length, 0);
});
