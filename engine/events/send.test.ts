import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';

import { Database } from '../db/database.ts';
import { ResponseStream } from '../http/streams/stream.ts';
import { systemClock } from '../lib/clock.ts';
import { Events } from './events.ts';
import { sendEvents } from './send.ts';
import { eventForm } from './versions.ts';

const everything = {
  until: undefined,
  filters: new Map<string, ReadonlySet<string>>(),
  form: eventForm('1.24'),
  separator: '' as const,
};

/** Events that are sent over a real connection to a client that reads when the test lets it. */
async function connect(events: Events, sent: (output: ServerResponse, done: Promise<void>) => void) {
  const server = createServer((_request, response) => {
    response.writeHead(200).flushHeaders();
    const stream = new ResponseStream(response);
    sent(response, sendEvents({ clock: systemClock, events }, stream, { ...everything, cursor: events.cursor }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const request = get({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, agent: false });
  const [answer] = (await once(request, 'response')) as [IncomingMessage];
  return {
    answer,
    [Symbol.dispose]: () => {
      answer.destroy();
      server.close();
    },
  };
}

test('a client that does not read takes no memory, and gets every event in order when it reads again', async () => {
  using db = new Database(':memory:');
  const events = new Events(db, systemClock, { error: console.error });
  let output: ServerResponse | undefined;
  using client = await connect(events, (response, done) => {
    output = response;
    done.catch(() => undefined);
  });
  const many = 15_000;
  const text = 'x'.repeat(2000);

  let most = 0;
  for (let n = 0; n < many; n += 1) {
    events.emit('container', 'start', String(n), { text });
    if (n % 500 === 0) await new Promise(setImmediate);
    most = Math.max(most, output?.writableLength ?? 0);
  }

  // All of them are 30 MB; a batch of a hundred is a fifth of one.
  assert.ok(most < 1024 * 1024, `${most} bytes wait in memory`);
  let rest = '';
  let next = 0;
  for await (const chunk of client.answer.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      assert.equal((JSON.parse(line) as { id: string }).id, String(next));
      next += 1;
    }
    if (next === many) break;
  }
  assert.equal(next, many);
});

test('a client that has gone is forgotten, also when it left with its events unread', async () => {
  using db = new Database(':memory:');
  const events = new Events(db, systemClock, { error: console.error });
  const sent = Promise.withResolvers<void>();
  const listening = Promise.withResolvers<void>();
  using client = await connect(events, (_response, done) => {
    listening.resolve();
    done.then(sent.resolve, sent.reject);
  });
  await listening.promise;
  assert.equal(events.listenerCount, 1);
  for (let n = 0; n < 3000; n += 1) events.emit('container', 'start', String(n), { text: 'x'.repeat(2000) });

  client.answer.destroy();
  await sent.promise;

  assert.equal(events.listenerCount, 0);
});

test('a client that falls behind the stored events is dropped, and holds up nobody', async () => {
  using db = new Database(':memory:');
  const events = new Events(db, systemClock, { error: console.error }, { events: 1000, bytes: 1e9 });
  const sent = Promise.withResolvers<void>();
  const listening = Promise.withResolvers<void>();
  using client = await connect(events, (_response, done) => {
    listening.resolve();
    done.then(sent.resolve, sent.reject);
  });
  await listening.promise;
  for (let n = 0; n < 8000; n += 1) {
    events.emit('container', 'start', String(n), { text: 'x'.repeat(2000) });
    if (n % 100 === 0) await new Promise(setImmediate);
  }

  let text = '';
  const reading = async (): Promise<void> => {
    for await (const chunk of client.answer.setEncoding('utf8') as AsyncIterable<string>) text += chunk;
  };

  await assert.rejects(reading(), { code: 'ECONNRESET' });
  await sent.promise;
  const whole = text.split('\n').slice(0, -1);
  assert.ok(whole.length < 8000);
  assert.deepEqual(
    whole.map((line) => (JSON.parse(line) as { id: string }).id),
    whole.map((_, n) => String(n)),
  );
  assert.equal(events.listenerCount, 0);
});
