import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { StatusResponse } from '../messages/control.ts';
import type { Sent } from '../wire/message.ts';
import { StatusQueue } from './status-queue.ts';

type Status = Sent<typeof StatusResponse>;

const PUSHES = 100_000;

function bytesOf(current: number, isOver: boolean): Status {
  const completed = isOver ? { completed: { seconds: 1, nanos: 0 } } : {};
  return { statuses: [{ id: 'layer', vertex: 'v', current, total: PUSHES, ...completed }] };
}

function pushAll(queue: StatusQueue): void {
  for (let at = 0; at < PUSHES; at += 1) queue.push(bytesOf(at, false));
  queue.push(bytesOf(PUSHES, true));
  queue.end();
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
