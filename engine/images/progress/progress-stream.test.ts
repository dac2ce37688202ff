import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';

import { Reply } from '../../http/reply.ts';
import type { ApiRequest } from '../../http/request.ts';
import { streamProgress } from './progress-stream.ts';
import { progressLine } from './progress.ts';

const LINES = 200_000;
const MAX_WAITING_BYTES = 256 * 1024;

/** A client of a pull, push, load or import; its last line, and the most bytes that waited for it. */
async function follow(reads: boolean): Promise<{ text: string; waiting: number }> {
  const over = Promise.withResolvers<ServerResponse>();
  let waiting = 0;
  const server = createServer((raw, response) => {
    const work = streamProgress({ raw } as ApiRequest, new Reply(response), async (report) => {
      for (let at = 0; at < LINES; at += 1) {
        report(progressLine('Downloading', 'layer', at, LINES));
        waiting = Math.max(waiting, response.writableLength);
        if (at % 1000 === 0) await setImmediate();
      }
      report(progressLine('Downloading', 'layer', LINES, LINES));
      report({ status: 'Download complete', id: 'layer' });
    });
    work.then(() => over.resolve(response), over.reject);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.write('GET / HTTP/1.0\r\n\r\n');
  let [text, isRead] = ['', reads];
  socket.on('data', (piece: Buffer) => {
    text = (text + piece.toString()).slice(-1000);
    if (!isRead) socket.pause();
  });
  await over.promise;
  isRead = true;
  socket.resume();
  await once(socket, 'close');
  server.close();
  return { text, waiting };
}

for (const [name, reads] of [
  ['reads nothing', false],
  ['reads all', true],
] as const) {
  test(`progress for a client that ${name} takes little memory, and ends with the same lines`, async () => {
    const { text, waiting } = await follow(reads);

    assert.ok(waiting < MAX_WAITING_BYTES, `${waiting}`);
    assert.match(text, /"current":200000,"total":200000\}[^\n]*\n[^\n]*Download complete/);
  });
}
