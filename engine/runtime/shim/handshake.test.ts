import assert from 'node:assert/strict';
import { mkdirSync, mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { openConnection, ShimLost } from './handshake.ts';

function folderOf(): ReturnType<typeof mkdtempDisposableSync> {
  return mkdtempDisposableSync(join(tmpdir(), 'gantry-shim-'));
}

for (const [name, prepare] of [
  ['without a folder', () => undefined],
  ['without a socket', (folder: string) => mkdirSync(folder)],
  [
    'with a socket on which nothing listens',
    (folder: string) => {
      mkdirSync(folder);
      writeFileSync(join(folder, 'shim.sock'), '');
    },
  ],
] as const) {
  test(`openConnection: a shim ${name} is lost`, async () => {
    using parent = folderOf();
    const folder = join(parent.path, 'shim');
    prepare(folder);

    await assert.rejects(openConnection(folder, 'control'), ShimLost);
  });
}

for (const [name, leave] of [
  ['ends', (socket: Socket) => void socket.resume().end()],
  ['is destroyed', (socket: Socket) => void socket.destroy()],
  // Unread bytes: the kernel tells the other side of a reset.
  ['leaves unread bytes', (socket: Socket) => void socket.pause().destroy()],
] as const) {
  test(`openConnection: a shim that ${name} before its greeting is lost`, async () => {
    using folder = folderOf();
    await using server = createServer(leave).listen(join(folder.path, 'shim.sock'));
    await new Promise((resolve) => server.once('listening', resolve));

    await assert.rejects(openConnection(folder.path, 'control'), ShimLost);
  });
}
