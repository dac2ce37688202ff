import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { ReusedBuffers } from './reused-buffers.ts';

test('pieces that waited go first, and in order', { timeout: 120_000 }, async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'gantry-test-'));
  const path = join(folder.path, 'socket');
  await using server = createServer().listen(path);
  await once(server, 'listening');
  const buffers = new ReusedBuffers();
  const onread = buffers.bind(() => socket);
  const socket: Socket = connect({ path, onread });
  const [peer] = (await once(server, 'connection')) as [Socket];
  for (const [index, piece] of ['one ', 'two ', 'three '].entries()) {
    peer.write(piece);
    const waiting = ['one ', 'two ', 'three '].slice(0, index + 1).join('').length;
    while (socket.readableLength < waiting) await setTimeout(1);
  }

  let got = '';
  buffers.flow(socket, (piece, taken) => {
    got += String(piece);
    taken();
  });
  const close = once(socket, 'close', { signal: AbortSignal.timeout(60_000) });
  peer.end('four');
  await close;

  assert.equal(got, 'one two three four');
});
