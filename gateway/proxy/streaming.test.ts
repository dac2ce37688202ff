import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type ClientRequest, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import { eventually } from '@gantry/testing/eventually.ts';
import { RawClient } from '@gantry/testing/gateway/raw-client.ts';
import { RawUpstream } from '@gantry/testing/gateway/raw-upstream.ts';
import { type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';
import { leastOf } from '@gantry/testing/memory/bytes-in-use.ts';

import { askCaller } from '../admin/client.ts';

const MEGABYTE = 2 ** 20;
const piece = Buffer.alloc(MEGABYTE, 'x');

const settings: Settings = { limits: { anonymous: 1_000_000 }, log: { level: 'info' } };

const upstream = await TestUpstream.start();
const gateway = await TestGateway.start({ ...settings, upstream: upstream.url });
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

function ask(path: string, method = 'GET', to = gateway): ClientRequest {
  return request({ ...to.target, path, method, agent: false });
}

async function responseTo(outgoing: ClientRequest): Promise<IncomingMessage> {
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  return response;
}

async function sizeOf(stream: AsyncIterable<Buffer>): Promise<number> {
  let size = 0;
  for await (const chunk of stream) size += chunk.length;
  return size;
}

async function writeMegabytes(to: ClientRequest | ServerResponse, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) if (!to.write(piece)) await once(to, 'drain');
  to.end();
}

async function nothingUnderWay(at = gateway): Promise<void> {
  await eventually(
    'nothing is under way',
    async () => (await askCaller(at.adminSocket, 'ip:127.0.0.1')).underWay === 0,
  );
}

function rssMegabytes(pid: number): number {
  const line = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(line?.[1]) / 1024;
}

/** By how much a gateway's memory grew at most while something was going on. */
async function growthDuring({ pid }: TestGateway, work: () => Promise<void>): Promise<number> {
  const before = rssMegabytes(pid);
  let peak = before;
  const timer = setInterval(() => (peak = Math.max(peak, rssMegabytes(pid))), 10);
  await work();
  clearInterval(timer);
  return Math.max(peak, rssMegabytes(pid)) - before;
}

test('the head of an answer is passed on before there is any body', async () => {
  const { promise: held, resolve: goOn } = Promise.withResolvers<void>();
  upstream.on('/events', async (_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.flushHeaders();
    await held;
    res.end('data: 1\n\n');
  });
  using client = await RawClient.connect(gateway);

  const head = await client.send('GET /events HTTP/1.1\r\nHost: a\r\n\r\n').until('\r\n\r\n');
  goOn();
  const body = await client.until('0\r\n\r\n');

  assert.match(head, /^HTTP\/1.1 200 OK\r\n/);
  assert.match(head, /x-ratelimit-remaining/);
  assert.match(body, /data: 1/);
});

test('each piece of an answer arrives before the next one is sent', async () => {
  const pieces = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
  upstream.on('/in-pieces', async (_req, res) => {
    for (const [n, { promise }] of pieces.entries()) {
      res.write(`piece ${n};`);
      await promise;
    }
    res.end('end');
  });
  using client = await RawClient.connect(gateway);
  client.send('GET /in-pieces HTTP/1.1\r\nHost: a\r\n\r\n');

  for (const [n, { resolve }] of pieces.entries()) {
    await client.until(`piece ${n};`);
    resolve();
  }

  assert.match(await client.until('0\r\n\r\n'), /end/);
});

test('a long request reaches the upstream while it is sent', async () => {
  let arrived = '';
  upstream.on('/in-pieces', (req, res) => {
    req.on('data', (data: Buffer) => (arrived += data.toString()));
    req.on('end', () => res.end(arrived.slice(MEGABYTE)));
  });
  using client = await RawClient.connect(gateway);
  client.send('POST /in-pieces HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
  client.send(`${MEGABYTE.toString(16)}\r\n${piece.toString()}\r\n`);

  for (const text of ['one', 'two', 'six']) {
    client.send(`3\r\n${text}\r\n`);
    await eventually(`${text} at the upstream`, () => arrived.endsWith(text));
  }
  client.send('0\r\n\r\n');

  assert.equal((await client.answer()).body, 'onetwosix');
});

test('200 megabytes go through in either direction without being held in memory', async () => {
  let received = 0;
  upstream.on('/download', async (_req, res) => await writeMegabytes(res, 200));
  upstream.on('/upload', async (req, res) => {
    received = await sizeOf(req as AsyncIterable<Buffer>);
    res.end('done');
  });
  const download = async (through: TestGateway): Promise<void> => {
    const size = await sizeOf((await responseTo(ask('/download', 'GET', through).end())) as AsyncIterable<Buffer>);
    assert.equal(size / MEGABYTE, 200);
  };
  const upload = async (through: TestGateway): Promise<void> => {
    const outgoing = ask('/upload', 'POST', through);
    await writeMegabytes(outgoing, 200);
    await sizeOf((await responseTo(outgoing)) as AsyncIterable<Buffer>);
    assert.equal(received / MEGABYTE, 200);
  };

  for (const work of [download, upload]) {
    const grown = await leastOf(5, 120, async () => {
      await using fresh = await TestGateway.start({ ...settings, upstream: upstream.url });
      return await growthDuring(fresh, async () => await work(fresh));
    });
    assert.ok(grown < 120, `${grown.toFixed()} MB by ${work.name}`);
  }
});

test('an upstream sends no more than a client takes that does not read', async () => {
  let sent = 0;
  upstream.on('/unread', async (_req, res) => {
    while (sent < 200 && !res.destroyed) {
      const more = res.write(piece);
      sent += 1;
      if (more) continue;
      const settled = new AbortController();
      const { signal } = settled;
      await Promise.race([once(res, 'drain', { signal }), once(res, 'close', { signal })]);
      settled.abort();
    }
  });
  const response = await responseTo(ask('/unread').end());

  response.pause();
  await eventually('the upstream has to wait', async () => {
    const before = sent;
    await sleep(100);
    return before > 0 && sent === before;
  });
  const held = sent;
  response.destroy();

  assert.ok(held < 50, `${held} MB were sent`);
  await nothingUnderWay();
});

test('a client can send no more than an upstream takes that does not read', async () => {
  await using deaf = await RawUpstream.start((socket) => socket.pause());
  // A client that has left is only seen when what it had sent is read: here by the time limit.
  await using patient = await TestGateway.start({
    ...settings,
    upstream: deaf.url,
    timeouts: { upstreamHeadersMs: 1000 },
  });
  const outgoing = ask('/unread', 'POST', patient);
  outgoing.on('error', () => undefined);
  const closed = new Promise((resolve) => outgoing.once('close', resolve));

  let sent = 0;
  while (sent < 200) {
    const more = outgoing.write(piece);
    sent += 1;
    if (more) continue;
    const drained = new Promise((resolve) => outgoing.once('drain', () => resolve(true)));
    if (!(await Promise.race([drained, sleep(300, false)]))) break;
  }
  outgoing.destroy();
  await closed;

  assert.ok(sent < 50, `${sent} MB were taken`);
  await nothingUnderWay(patient);
});

test('trailers say nothing about the limits', async () => {
  upstream.on('/rate-trailers', (_req, res) => {
    res.writeHead(200, { trailer: 'x-checksum, x-ratelimit-remaining' });
    res.write('body');
    res.addTrailers({ 'x-checksum': '1', 'x-ratelimit-remaining': '99', 'retry-after': '1' });
    res.end();
  });
  const response = await responseTo(ask('/rate-trailers').end());

  await sizeOf(response as AsyncIterable<Buffer>);

  assert.deepEqual(response.trailers, { 'x-checksum': '1' });
});

test("an answer's trailers are passed on", async () => {
  upstream.on('/trailers', (_req, res) => {
    res.writeHead(200, { trailer: 'x-checksum' });
    res.write('body');
    res.addTrailers({ 'x-checksum': 'abc' });
    res.end();
  });
  const response = await responseTo(ask('/trailers').end());

  await sizeOf(response as AsyncIterable<Buffer>);

  assert.equal(response.trailers['x-checksum'], 'abc');
});

test('answers without a body have none: HEAD, 204 and 304', async () => {
  upstream.on('/long', (_req, res) => void res.writeHead(200, { 'content-length': 1000 }).end());
  upstream.on('/204', (_req, res) => void res.writeHead(204, { etag: '"1"' }).end());
  upstream.on('/304', (_req, res) => void res.writeHead(304, { etag: '"1"' }).end());
  using client = await RawClient.connect(gateway);
  client.send('HEAD /long HTTP/1.1\r\nHost: a\r\n\r\n');
  const head = await client.until('\r\n\r\n');

  client.send('GET /204 HTTP/1.1\r\nHost: a\r\n\r\nGET /304 HTTP/1.1\r\nHost: a\r\n\r\n');
  const answers = [await client.answer(), await client.answer()];

  assert.match(head, /200 OK[^]*content-length: 1000/);
  assert.deepEqual(
    answers.map(({ status, headers }) => [status, headers.get('etag'), headers.has('transfer-encoding')]),
    [
      [204, '"1"', false],
      [304, '"1"', false],
    ],
  );
  assert.ok(answers.every(({ headers }) => headers.has('x-ratelimit-used')));
  assert.equal(client.received, '');
});

test('an answer without a length ends where the upstream ends it', async () => {
  await using old = await RawUpstream.start((socket) => socket.end('HTTP/1.0 200 OK\r\n\r\nuntil the end'));
  await using before = await TestGateway.start({ ...settings, upstream: old.url });
  using client = await RawClient.connect(before);

  const answer = await client.send('GET / HTTP/1.1\r\nHost: a\r\n\r\n').answer();

  assert.equal(answer.headers.get('transfer-encoding'), 'chunked');
  assert.match(answer.body, /until the end/);
});

test('many requests use few connections to the upstream', async () => {
  const seen = new Set<unknown>();
  upstream.on('/again', (req, res) => {
    seen.add(req.socket);
    req.resume();
    req.on('end', () => res.end('ok'));
  });

  for (let round = 0; round < 25; round += 1) {
    await Promise.all(
      Array.from({ length: 4 }, async (_, n) => {
        await gateway.request('/again', n % 2 === 0 ? {} : { method: 'POST', body: 'body' });
      }),
    );
  }

  // A machine that stands still for longer than the keep-alive time closes those of a round.
  assert.ok(seen.size <= 40, `${seen.size} connections for 100 requests`);
});

test('HTTP/1.0 clients get answers that they understand', async () => {
  upstream.on('/chunked', (_req, res) => {
    res.write('one');
    res.end('two');
  });
  upstream.on('/sized', (_req, res) => void res.writeHead(200, { 'content-length': 5 }).end('sized'));
  using chunked = await RawClient.connect(gateway);
  using kept = await RawClient.connect(gateway);

  const answer = await chunked.send('GET /chunked HTTP/1.0\r\n\r\n').answer();
  const first = await kept.send('GET /sized HTTP/1.0\r\nConnection: keep-alive\r\n\r\n').answer();
  const second = await kept.send('GET /sized HTTP/1.0\r\nConnection: keep-alive\r\n\r\n').answer();

  assert.equal(answer.body, 'onetwo');
  assert.equal(answer.headers.has('transfer-encoding'), false);
  assert.deepEqual([first.body, second.body], ['sized', 'sized']);
});

test('a client that waits for a permission to send gets it, and the upstream the body', async () => {
  using client = await RawClient.connect(gateway);
  client.send('POST /expects HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n');

  const permission = await client.answer();
  const answer = await client.send('hello').answer();

  assert.equal(permission.status, 100);
  assert.match(answer.body, /"body":"hello"/);
  assert.equal(upstream.received.at(-1)?.headers.expect, undefined);
});

test('a client that waits for a permission to send gets the refusal instead', async () => {
  await using strict = await TestGateway.start({ limits: { anonymous: 0 }, upstream: upstream.url });
  using client = await RawClient.connect(strict);

  const answer = await client
    .send('POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n')
    .answer();

  assert.equal(answer.status, 403);
  assert.equal(answer.headers.get('connection'), 'close');
  await client.closed;
});

test('an expectation that nobody knows is refused', async () => {
  using client = await RawClient.connect(gateway);

  const answer = await client.send('GET / HTTP/1.1\r\nHost: a\r\nExpect: a-miracle\r\n\r\n').answer();

  assert.equal(answer.status, 417);
  assert.ok(answer.headers.has('x-ratelimit-used'));
});

test('an answer that comes before the whole request is passed on, and the connection goes on', async () => {
  upstream.on('/early', (_req, res) => void res.writeHead(413).end('too large'));
  using client = await RawClient.connect(gateway);
  client.send(`POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: ${3 * MEGABYTE}\r\n\r\n${'x'.repeat(2 * MEGABYTE)}`);

  const early = await client.answer();
  client.send('x'.repeat(MEGABYTE));
  const next = await client.send('GET /next HTTP/1.1\r\nHost: a\r\n\r\n').answer();

  assert.deepEqual([early.status, next.status], [413, 200]);
});

test('a long request that is refused is read to its end, and the connection goes on', async () => {
  await using strict = await TestGateway.start({
    upstream: upstream.url,
    limits: { anonymous: 0 },
    secondary: { graphqlPoints: { limit: 0 } },
  });
  using client = await RawClient.connect(strict);
  const body = 'x'.repeat(MEGABYTE);

  const statuses: number[] = [];
  for (const path of ['/graphql', '/graphql', '/upload']) {
    client.send(`POST ${path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`);
    client.send(`${MEGABYTE.toString(16)}\r\n${body}\r\n0\r\n\r\n`);
    statuses.push((await client.answer()).status);
  }

  assert.deepEqual(statuses, [403, 403, 403]);
});

test('requests sent one after the other without waiting are answered in their order', async () => {
  upstream.on('/slow', async (_req, res) => {
    await sleep(100);
    res.end('slow');
  });
  upstream.on('/fast', (_req, res) => void res.end('fast'));
  using client = await RawClient.connect(gateway);

  client.send('GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /fast HTTP/1.1\r\nHost: a\r\n\r\n');
  const answers = [await client.answer(), await client.answer()];

  assert.deepEqual(
    answers.map(({ body }) => body),
    ['slow', 'fast'],
  );
});

test('a gateway that ends lets an upload that is under way come to its end', async () => {
  await using ending = await TestGateway.start({ ...settings, upstream: upstream.url });
  using client = await RawClient.connect(ending);
  client.send('POST /upload-at-the-end HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel');
  const isUnderWay = async () => (await askCaller(ending.adminSocket, 'ip:127.0.0.1')).underWay === 1;
  await eventually('the upload is under way', isUnderWay);

  ending.signal('SIGTERM');
  await ending.logged(/^ending/);
  const answer = await client.send('lo').answer();

  assert.match(answer.body, /"body":"hello"/);
  assert.equal(await ending.exited, 0);
});
