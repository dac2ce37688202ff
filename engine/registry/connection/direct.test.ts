import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';

import { DirectConnections, type Answer } from './direct.ts';
import { discard, readBody, readText } from './read-body.ts';

const signal = new AbortController().signal;

async function serve(
  listener: (request: IncomingMessage, response: ServerResponse) => void,
  silenceMs = 60_000,
): Promise<AsyncDisposable & { url: URL; connections: DirectConnections }> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const connections = new DirectConnections({ rejectUnauthorized: true }, silenceMs);
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`),
    connections,
    async [Symbol.asyncDispose]() {
      connections[Symbol.dispose]();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const textOf = async (answer: Answer): Promise<string> => await readText(answer, 1e9, 'it');

test('a server that says nothing, or stops in the middle, is not waited for without end', async () => {
  await using place = await serve((request, response) => void (request.url === '/part' && response.write('part')), 200);
  const { connections, url } = place;

  await assert.rejects(connections.request(url, { method: 'GET', signal }), /silent for 0\.2 seconds/);
  const part = await connections.request(new URL('/part', url), { method: 'GET', signal });
  await assert.rejects(textOf(part), /silent for 0\.2 seconds|aborted/);
});

/** Writes this, then one byte a moment for ever. */
function trickle({ socket }: IncomingMessage, first: string, byte = 'a'): void {
  socket.write(first);
  const timer = setInterval(() => socket.write(byte), 20);
  socket.once('close', () => clearInterval(timer));
}

for (const [what, first, byte] of [
  ['a head that comes byte by byte', 'HTTP/1.1 200 OK\r\nX-Long: ', 'a'],
  ['interim answers without end', '', 'HTTP/1.1 100 Continue\r\n\r\n'],
] as const) {
  test(`${what} is not waited for without end, nor by a client that leaves`, async () => {
    await using place = await serve((request) => trickle(request, first, byte), 1000);
    const { connections, url } = place;
    const leaving = new AbortController();

    const left = connections.request(url, { method: 'GET', signal: leaving.signal });
    setImmediate(() => leaving.abort(new Error('the client has left')));

    await assert.rejects(left, { name: 'AbortError' });
    await assert.rejects(connections.request(url, { method: 'GET', signal }), /no whole head within 2 seconds/);
  });
}

test('a body that comes byte by byte is given up in time, and one that nobody wants does not hold up the next step', async () => {
  const HEAD = 'HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n';
  await using place = await serve((request) => trickle(request, HEAD));
  const { connections, url } = place;
  const answer = async (): Promise<Answer> => await connections.request(url, { method: 'GET', signal });

  await assert.rejects(readBody(await answer(), 1e6, 'the manifest', 300), {
    message: 'the manifest did not come to its end within 0.3 seconds',
  });
  const unwanted = await answer();
  await discard(unwanted, 300);

  assert.ok(unwanted.body.destroyed);
});

test('a body that comes slowly, and an answer that is read slowly, are not the silence of the server', async () => {
  const silenceMs = 3000;
  await using place = await serve((request, response) => {
    let bytes = 0;
    request.on('data', (piece: Buffer) => (bytes += piece.length));
    request.once('end', () => response.end(`${bytes} ${'x'.repeat(3_000_000)}`));
  }, silenceMs);
  const { connections, url } = place;
  async function* slowly(): AsyncGenerator<Buffer> {
    const memory = Buffer.alloc(100_000, 'a'); // the same one for each piece
    yield memory;
    await pause(1.2 * silenceMs);
    yield memory;
  }
  const sent = connections.request(url, { method: 'PATCH', body: slowly(), signal }).then(textOf);
  const read = await connections.request(url, { method: 'GET', signal });
  await pause(1.2 * silenceMs);

  assert.match(await textOf(read), /^0 x{3000000}$/);
  assert.match(await sent, /^200000 x{3000000}$/);
});

test('an answer before the end of the body ends the body, and the next request goes well', async () => {
  const seen: string[] = [];
  await using place = await serve((request, response) => {
    seen.push(request.method!);
    response.writeHead(request.method === 'PATCH' ? 429 : 200).end('said');
  });
  let isLeft = false;
  async function* endless(): AsyncGenerator<Buffer> {
    try {
      for (;;) yield Buffer.alloc(1_000_000);
    } finally {
      isLeft = true;
    }
  }

  const early = await place.connections.request(place.url, { method: 'PATCH', body: endless(), signal });
  assert.deepEqual([early.statusCode, await textOf(early)], [429, 'said']);
  const next = await place.connections.request(place.url, { method: 'GET', signal });
  await discard(next);

  assert.deepEqual([next.statusCode, isLeft, seen], [200, true, ['PATCH', 'GET']]);
});

test('an early head of an answer stops the timer of heads, though the body ends later', async () => {
  const SILENCE_MS = 1000;
  await using place = await serve((request, response) => {
    response.writeHead(202).write('.');
    const alive = setInterval(() => response.write('.'), 50);
    request.resume().once('end', () => {
      // Longer than a head may take.
      setTimeout(() => {
        clearInterval(alive);
        response.end('end');
      }, 3 * SILENCE_MS);
    });
  }, SILENCE_MS);
  const body = Buffer.alloc(20_000_000);

  const answer = await place.connections.request(place.url, { method: 'PUT', body, signal });

  assert.match(await textOf(answer), /^\.+end$/);
});

test('a body that fails ends its request with that error', async () => {
  await using place = await serve((request) => void request.resume());
  async function* failing(): AsyncGenerator<Buffer> {
    yield Buffer.alloc(10);
    throw new Error('the disk is gone');
  }

  await assert.rejects(
    place.connections.request(place.url, { method: 'PATCH', body: failing(), signal }),
    /the disk is gone/,
  );
});
