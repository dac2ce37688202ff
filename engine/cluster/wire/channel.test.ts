import assert from 'node:assert/strict';
import { duplexPair } from 'node:stream';
import { suite, test } from 'node:test';

import { Type } from 'typebox';

import { Channel } from './channel.ts';

const Message = Type.Union([Type.Object({ say: Type.Literal('tasks'), tasks: Type.Array(Type.Number()) })]);

/** Sends a line to a channel; returns its messages, and the reason for which it ended. */
async function received(line: string): Promise<{ messages: unknown[]; reason: string | undefined }> {
  const [far, near] = duplexPair();
  const messages: unknown[] = [];
  let reason: string | undefined;
  const channel = new Channel(near, Message, {
    receive: (message) => messages.push(message),
    refused: (text) => (reason = text),
  });
  far.on('error', () => undefined).end(`${line}\n`);
  await channel.closed;
  return { messages, reason };
}

suite('a line of a channel', () => {
  test('is a message; a node gets 200,000 values in one', async () => {
    const tasks = Array.from({ length: 200_000 }, (_, index) => index);

    const { messages, reason } = await received(JSON.stringify({ say: 'tasks', tasks }));

    assert.deepEqual(messages, [{ say: 'tasks', tasks }]);
    assert.equal(reason, undefined);
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
});

test('a channel ends when the other side does not read', async () => {
  const [, near] = duplexPair();
  const reasons: string[] = [];
  const handlers = { receive: () => undefined, refused: (reason: string) => reasons.push(reason) };
  using channel = new Channel<typeof Message, string>(near, Message, handlers);

  for (let sent = 0; sent < 40; sent += 1) channel.send('x'.repeat(1_000_000));
  await channel.closed;

  assert.deepEqual(reasons, ['messages are not read']);
});
