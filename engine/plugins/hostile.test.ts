import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempDisposableSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { systemClock } from '../lib/clock.ts';
import { Plugins } from './plugins.ts';

const MEGABYTE = Buffer.alloc(1 << 20, ' ');
const HEAD = 'HTTP/1.1 200 OK\r\n';

/** Writes the same for ever, as fast as it is taken. */
function forEver(socket: Socket, bytes: Buffer | string, first = ''): void {
  socket.write(first);
  while (!socket.destroyed && socket.write(bytes)) continue;
  if (!socket.destroyed) socket.once('drain', () => forEver(socket, bytes));
}

/** Answers of a plugin to its first question, and the engine's message about each. */
const plugins: readonly [what: string, answer: (socket: Socket) => void, told: RegExp][] = [
  ['says nothing', () => undefined, /no answer within 1 seconds/],
  ['closes the connection', (socket) => socket.end(), /the connection broke off/],
  ['answers no HTTP', (socket) => socket.end('SSH-2.0-OpenSSH_9.6\r\n'), /it speaks no HTTP/],
  ['never ends its head', (socket) => forEver(socket, 'X-More: and more\r\n'), /it speaks no HTTP/],
  ['has a head without end', (socket) => forEver(socket, 'X-More: and more\r\n', HEAD), /its head is too large/],
  ['says "go on" for ever', (socket) => forEver(socket, 'HTTP/1.1 100 Continue\r\n\r\n'), /no answer within 1 seconds/],
  [
    'changes the protocol',
    (socket) => socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
    /does not answer/,
  ],
  [
    'answers a byte a moment',
    (socket) => {
      socket.write(`${HEAD}\r\n`);
      const timer = setInterval(() => socket.write(' '), 20);
      socket.once('close', () => clearInterval(timer));
    },
    /does not answer/,
  ],
  [
    'answers a gigabyte',
    (socket) => forEver(socket, MEGABYTE, `${HEAD}Content-Length: 1073741824\r\n\r\n`),
    /more than 16777216 bytes/,
  ],
  ['answers without end', (socket) => forEver(socket, MEGABYTE, `${HEAD}\r\n`), /more than 16777216/],
  ['is cut off', (socket) => socket.end(`${HEAD}Content-Length: 100\r\n\r\n{"Impl`), /the connection broke off/],
  ['answers garbage', (socket) => socket.end(`${HEAD}\r\n\u0000\u0001{{{`), /answered against its protocol/],
  ['answers half a value', (socket) => socket.end(`${HEAD}\r\n{"Implements":["Vol`), /answered against its protocol/],
  [
    'answers the wrong kind',
    (socket) => socket.end(`${HEAD}\r\n{"Implements":{"0":7}}`),
    /answered against its protocol/,
  ],
  [
    'answers a million brackets',
    (socket) => socket.end(`${HEAD}\r\n${'['.repeat(1e6)}`),
    /answered against its protocol/,
  ],
  [
    'answers a well-formed depth',
    (socket) => socket.end(`${HEAD}\r\n{"Implements":${'['.repeat(1e5)}${']'.repeat(1e5)}}`),
    /answered against its protocol/,
  ],
  [
    'fails with a page',
    (socket) => socket.end(`HTTP/1.1 500 No\r\n\r\n${'<'.repeat(5000)}`),
    /^Plugin\.Activate: <{1000}…$/,
  ],
  [
    'redirects',
    (socket) => socket.end('HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n'),
    /Plugin\.Activate/,
  ],
];

for (const [what, answer, told] of plugins) {
  test(`a plugin that ${what} is told of, and its connection is closed`, async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'gantry-plugins-'));
    const server = createServer((socket) => {
      socket.on('error', () => socket.destroy()).once('data', () => answer(socket));
    }).listen(join(folder.path, 'bad.sock'));
    await once(server, 'listening');
    const closed = once(server, 'close');

    // Long answers take their time on a busy machine; only the end of the others is a timeout.
    const limits = { timeoutMs: /no answer|does not answer/.test(told.source) ? 1000 : 300_000, patienceMs: 0 };
    await assert.rejects(new Plugins(systemClock, [folder.path]).get('bad', 'authz', limits), {
      kind: 'failed',
      message: told,
    });

    server.close(); // with its last connection
    await closed;
  });
}
