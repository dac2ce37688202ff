import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { eventually } from '@gantry/testing/eventually.ts';
import { assertSmallGrowth } from '@gantry/testing/memory/resident-memory.ts';
import { Session } from '@gantry/testing/streams/session.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const MB = 1024 * 1024;
const MAX_GROWTH = 64 * MB;

/** Bodies of requests that come slowly, in tiny pieces, or never to their end. */
suite('bodies', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
    await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'none' } }, 'target');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const residentBytes = (): number =>
    Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${engine.pid}/status`, 'utf8'))?.[1]) * 1024;

  async function begin(request: string, headers: string[]): Promise<Socket> {
    const socket = connect({ path: engine.socketPath, allowHalfOpen: true }).on('error', () => undefined);
    await once(socket, 'connect');
    socket.write([`${request} HTTP/1.1`, 'Host: x', ...headers, '', ''].join('\r\n'));
    return socket;
  }

  test('JSON of 60 clients that stop in the middle: other requests are served', async () => {
    assert.equal((await engine.post('/containers/create', ' ')).status, 400); // its functions are there now
    const before = residentBytes();
    const headers = ['Content-Type: application/json', `Content-Length: ${8 * MB}`];
    const text = Buffer.alloc(7 * MB, `{"Image":"busybox","Labels":{"x":"${'y'.repeat(1000)}`);
    const clients = await Promise.all(
      Array.from({ length: 60 }, async () => await begin('POST /containers/create', headers)),
    );
    const sent = clients.map(async (socket) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      socket.once('close', resolve).write(text, () => resolve());
      await promise;
    });

    await Promise.all(sent);

    // Pieces that were read and dropped are garbage until the next collection.
    await eventually('little memory is held', async () => {
      await engine.get('/containers/json');
      const grown = residentBytes() - before;
      if (grown < MAX_GROWTH) return true;
      throw new Error(`it grew by ${grown} bytes`);
    });
    await engine.create(['true'], { Labels: { long: 'x'.repeat(500_000) } });
    for (const socket of clients) socket.destroy();
  });

  test('JSON in chunks of one byte', async () => {
    assert.equal((await engine.post('/containers/create', ' ')).status, 400); // its functions are there now
    const headers = ['Content-Type: application/json', 'Transfer-Encoding: chunked'];
    await assertSmallGrowth(engine.pid, MAX_GROWTH / MB, async () => {
      const socket = await begin('POST /containers/create', headers);
      const session = new Session(socket);
      for (let n = 0; n < 10; n += 1) {
        if (!socket.write('1\r\n \r\n'.repeat(100_000))) await once(socket, 'drain');
      }
      socket.end('0\r\n\r\n');
      await session.ended;
      assert.match(session.text, /^HTTP\/1\.1 400 /);
    });
  });

  test('archives without end: others are read meanwhile, and nothing stays when the clients leave', async () => {
    // A folder may disappear meanwhile: find only complains then.
    const places = (): string[] =>
      spawnSync('find', [engine.dataRoot])
        .stdout.toString()
        .replace(/\n.*\/builds$/m, '')
        .split('\n')
        .toSorted();
    await Promise.all(Array.from({ length: 8 }, async () => await engine.loadBusybox())); // all threads are there
    const usual = new Set([...places(), join(engine.dataRoot, 'builds')]);
    const headers = ['Content-Type: application/x-tar', 'Transfer-Encoding: chunked'];
    const requests = ['PUT /containers/target/archive?path=/tmp', 'POST /build', 'POST /images/load'].concat(
      'POST /images/create?fromSrc=-',
    );
    await assertSmallGrowth(engine.pid, MAX_GROWTH / MB, async () => {
      const clients = await Promise.all(
        Array.from({ length: 100 }, async (_, n) => await begin(requests[n % requests.length]!, headers)),
      );
      for (const socket of clients) socket.write(`${(2000).toString(16)}\r\n${'x'.repeat(2000)}\r\n`);

      const copied = await engine.get('/containers/target/archive?path=/etc');
      await engine.loadBusybox();

      assert.equal(copied.status, 200);
      for (const socket of clients) socket.destroy();
      while (places().some((path) => !usual.has(path))) await setTimeout(200); // each look starts a program
    });
  });
});
