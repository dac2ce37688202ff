import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { StatusResponse } from '../messages/control.ts';
import type { Sent } from '../wire/message.ts';
import { StatusQueue } from './status-queue.ts';

type Status = Sent<typeof StatusResponse>;

const PUSHES = 100_000;
const NOW = Temporal.Instant.from('2026-01-01T00:00:00Z');

function bytesOf(current: number, isOver: boolean): Status {
  const completed = isOver ? { completed: { seconds: 1, nanos: 0 } } : {};
  return { statuses: [{ id: 'layer', vertex: 'v', current, total: PUSHES, ...completed }] };
}

function pushAll(queue: StatusQueue): void {
  for (let at = 0; at < PUSHES; at += 1) queue.push(bytesOf(at, false));
  queue.push(bytesOf(PUSHES, true));
  queue.end(NOW);
}

test('a client that does not read gets the beginning of a transfer, and its end', async () => {
  const queue = new StatusQueue();
  const reader = queue.read(new AbortController().signal);
  await reader.next(); // it follows from now on

  pushAll(queue);

  const rest = (await Array.fromAsync(reader)).flatMap(({ statuses = [] }) => statuses);
  assert.ok(rest.length < 1000, `${rest.length}`);
  assert.equal(rest.at(-1)?.current, PUSHES);
});

test('progress without a client is kept up to a limit, its newest part', async () => {
  const queue = new StatusQueue();

  pushAll(queue);

  const kept = (await Array.fromAsync(queue.read(new AbortController().signal))).flatMap(
    ({ statuses = [] }) => statuses,
  );
  assert.ok(kept.length < 3000, `${kept.length}`);
  assert.equal(kept.at(-1)?.current, PUSHES);
});

test('a build that ends in the middle of a step shows the step as canceled', async () => {
  const queue = new StatusQueue();
  const started = { seconds: 1, nanos: 0 };
  for (const digest of ['done', 'running']) queue.push({ vertexes: [{ digest, name: digest, started }] });
  queue.push({ vertexes: [{ digest: 'done', name: 'done', started, completed: started }] });

  queue.end(NOW);

  const states = await Array.fromAsync(queue.read(new AbortController().signal));
  const last = new Map(states.flatMap(({ vertexes = [] }) => vertexes.map((each) => [each.digest, each.error])));
  assert.deepEqual(
    [...last],
    [
      ['done', undefined],
      ['running', 'context canceled'],
    ],
  );
});
