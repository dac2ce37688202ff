import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { duplexPair } from 'node:stream';
import { suite, test } from 'node:test';
import { connect, createServer, type TLSSocket } from 'node:tls';

import { Type } from 'typebox';

import { systemClock } from '../../lib/clock.ts';
import { issue, newAuthority, newKey } from '../ca/certificates.ts';
import { Allowance, FROM_LEADER_LIMITS, FROM_NODE_LIMITS } from './allowance.ts';
import { Channel } from './channel.ts';

const schema = Type.Union([Type.Object({ say: Type.Literal('tasks'), tasks: Type.Array(Type.Number()) })]);
const MB = 1024 * 1024;

/** Sends a line to a channel; returns its messages, and the reason for which it ended. */
async function received(
  line: string,
  limits = FROM_LEADER_LIMITS,
): Promise<{ messages: unknown[]; reason: string | undefined }> {
  const [far, near] = duplexPair();
  const messages: unknown[] = [];
  let reason: string | undefined;
  const channel = new Channel(near, {
    ...{ schema, limits, clock: systemClock },
    receive: (message) => messages.push(message),
    refused: (text) => (reason = text),
  });
  far.on('error', () => undefined).end(`${line}\n`);
  await channel.closed;
  return { messages, reason };
}

/** Both ends of a connection by TLS. */
async function connected(parts: DisposableStack): Promise<{ near: TLSSocket; far: TLSSocket }> {
  const now = systemClock.now();
  const root = newAuthority('root', now);
  const { publicKey, privateKey } = newKey();
  const cert = issue(root, { subject: { name: 'x' }, publicKey, now, lifeSeconds: 3600, dnsNames: ['x'] });
  const server = createServer({ cert, key: privateKey, minVersion: 'TLSv1.3' }).listen(0, '127.0.0.1');
  parts.defer(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const far = connect({ host: '127.0.0.1', port, ca: root.certificate, servername: 'x' });
  parts.defer(() => far.destroy());
  far.on('error', () => undefined);
  const [near] = (await once(server, 'secureConnection')) as [TLSSocket];
  parts.defer(() => near.destroy());
  return { near, far };
}

suite('a line of a channel', () => {
  test('is a message; a node gets 200,000 values in one', async () => {
    const tasks = Array.from({ length: 200_000 }, (_, index) => index);

    const { messages, reason } = await received(JSON.stringify({ say: 'tasks', tasks }));

    assert.deepEqual(messages, [{ say: 'tasks', tasks }]);
    assert.equal(reason, undefined);
  });

  test('arrives in pieces of any size, also amid a letter', async () => {
    const [far, near] = duplexPair();
    const messages: unknown[] = [];
    const text = Type.Union([Type.Object({ say: Type.String() })]);
    const receive = (message: unknown): void => void messages.push(message);
    const channel = new Channel(near, { schema: text, limits: FROM_NODE_LIMITS, clock: systemClock, receive });

    for (const byte of Buffer.from('{"say":"é"}\n{"say":"€"}\n')) far.write(Buffer.of(byte));
    far.end();
    await channel.closed;

    assert.deepEqual(messages, [{ say: 'é' }, { say: '€' }]);
  });

  for (const [name, line] of [
    ['6 MB of brackets', '['.repeat(6_000_000)],
    ['brackets in a message', `{"say":"tasks","tasks":${'['.repeat(200)}${']'.repeat(200)}}`],
    ['text', 'hello'],
  ] as const) {
    test(`of ${name} ends the connection`, async () => {
      assert.deepEqual(await received(line), { messages: [], reason: 'a line is no JSON object' });
    });
  }

  for (const [name, limits, megabytes] of [
    ['a node', FROM_NODE_LIMITS, 2.1],
    ['a leader', FROM_LEADER_LIMITS, 8.1],
  ] as const) {
    test(`of ${megabytes} MB by ${name} ends the connection`, async () => {
      assert.deepEqual(await received('x'.repeat(megabytes * MB), limits), {
        messages: [],
        reason: 'a line is too long',
      });
    });
  }

  test('of 200,000 values and more by a node ends the connection', async () => {
    const line = JSON.stringify({ say: 'tasks', tasks: Array(200_000).fill(1) });

    assert.equal((await received(line, FROM_NODE_LIMITS)).reason, 'a line is no JSON object');
  });
});

suite('a side of a channel that does not read', () => {
  for (const [name, text, maxUnsent] of [
    ['long messages', 'x'.repeat(MB / 2), 33 * MB],
    ['short messages', '', MB],
  ] as const) {
    test(`loses it, for ${name}`, async () => {
      using parts = new DisposableStack();
      const { near, far } = await connected(parts);
      far.pause();
      let reason: string | undefined;
      const channel = new Channel(near, {
        ...{ schema, limits: FROM_NODE_LIMITS, clock: systemClock },
        receive: () => undefined,
        refused: (said) => (reason = said),
      });

      let unsent = 0;
      while (!near.destroyed) {
        channel.send({ say: text });
        unsent = Math.max(unsent, near.writableLength);
        await new Promise(setImmediate);
      }

      await channel.closed;
      assert.equal(reason, 'it does not read what it is sent');
      assert.ok(unsent < maxUnsent, `${unsent} bytes wait`);
      channel.send({ say: text }); // to nobody
    });
  }
});

suite('a side of a channel that sends much', () => {
  test('is read no faster than allowed', async () => {
    using parts = new DisposableStack();
    const { near, far } = await connected(parts);
    const paused = Promise.withResolvers<{ resume: () => void; milliseconds: number }>();
    let count = 0;
    const channel = new Channel(near, {
      schema,
      limits: { ...FROM_NODE_LIMITS, burstBytes: MB, bytesPerSecond: 1 },
      clock: {
        ...systemClock,
        after: (milliseconds, resume) => {
          paused.resolve({ resume, milliseconds });
          return { [Symbol.dispose]: () => undefined };
        },
      },
      receive: () => (count += 1),
    });

    far.write(`${JSON.stringify({ say: 'tasks', tasks: [] })}\n`.repeat(10_000));
    const { resume, milliseconds } = await paused.promise;

    assert.ok(near.isPaused());
    assert.ok(milliseconds > 1000);
    assert.ok(count >= 900 && count < 10_000, `${count} messages were read`);
    const before = count;
    resume();
    far.write(`${JSON.stringify({ say: 'tasks', tasks: [] })}\n`);
    await once(near, 'data');
    assert.ok(count > before);
    channel[Symbol.dispose]();
  });

  test('pays for the answers to it', () => {
    const [far, near] = duplexPair();
    const waits: number[] = [];
    const after = (milliseconds: number): Disposable => {
      waits.push(milliseconds);
      return { [Symbol.dispose]: () => undefined };
    };
    const limits = { ...FROM_NODE_LIMITS, burstBytes: MB, bytesPerSecond: 1000 };
    const channel = new Channel(near, {
      ...{ schema, limits, clock: { ...systemClock, after }, receive: () => undefined },
    });

    channel.charge(MB / 2);
    assert.deepEqual([waits.length, near.isPaused()], [0, false]);
    channel.charge(MB);
    assert.ok(near.isPaused());
    assert.ok(waits[0]! > 400_000, String(waits[0]));
    channel[Symbol.dispose]();
    far.destroy();
  });

  test('has its burst, then its bytes a second', () => {
    const allowance = new Allowance({ ...FROM_NODE_LIMITS, burstBytes: 1000, bytesPerSecond: 100 });
    const start = performance.now();

    assert.equal(Math.round(allowance.take(1000, start)), 0);
    assert.equal(Math.round(allowance.take(200, start + 1000)), 1000);
    assert.equal(Math.round(allowance.take(100, start + 3000)), 0);
    assert.equal(Math.round(allowance.take(1000, start + 1e9)), 0);
    assert.equal(Math.round(allowance.take(50, start + 1e9)), 500);
  });
});
