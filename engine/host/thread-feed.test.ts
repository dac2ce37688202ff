import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';

import { ThreadFeed } from './thread-feed.ts';

const LIMITS = { messageBytes: 100, aheadBytes: 300 };
const forever = new Promise<never>(() => undefined);

/** A thread that keeps what it gets, and consumes it when it is told to. */
class Thread {
  readonly messages: number[] = [];
  readonly bytes: number[] = [];
  end: { failure?: string } | undefined;
  readonly feed = new ThreadFeed(LIMITS, (message) => {
    if ('end' in message) this.end = message.end;
    else {
      this.messages.push(message.chunks.reduce((sum, { length }) => sum + length, 0));
      for (const chunk of message.chunks) this.bytes.push(...chunk);
    }
  });
}

/** Pieces of 40 bytes in one piece of memory, as some sources give them; `given` counts them. */
class Source {
  given = 0;
  isLeft = false;

  async *pieces(count: number, failure?: Error): AsyncGenerator<Uint8Array> {
    const memory = Buffer.alloc(40);
    try {
      for (let piece = 0; piece < count; piece += 1) {
        this.given += 1;
        yield memory.fill(piece);
        memory.fill(0xff); // at once, as the next piece would
        await setImmediate();
      }
      if (failure !== undefined) throw failure;
    } finally {
      this.isLeft = true;
    }
  }
}

test('a stream arrives whole and in order, in messages of a good size', async () => {
  const thread = new Thread();
  const run = thread.feed.run(new Source().pieces(7), forever);

  await run;

  assert.deepEqual(thread.messages, [120, 120, 40]);
  assert.deepEqual(
    thread.bytes,
    [0, 1, 2, 3, 4, 5, 6].flatMap((piece) => Array<number>(40).fill(piece)),
  );
  assert.deepEqual(thread.end, {});
});

test('a source waits for a thread that is behind', async () => {
  const [thread, source] = [new Thread(), new Source()];
  const run = thread.feed.run(source.pieces(30), forever);
  for (let turn = 0; turn < 200; turn += 1) await setImmediate();
  assert.deepEqual(thread.messages, [120, 120, 120]);
  assert.ok(source.given <= 11, `${source.given} pieces were asked for`);

  while (thread.end === undefined) {
    thread.feed.consumed(40);
    await setImmediate();
  }
  await run;

  assert.deepEqual(
    thread.bytes,
    Array.from({ length: 30 * 40 }, (_, at) => Math.floor(at / 40)),
  );
});

test('a source that fails is one that broke off, with its reason', async () => {
  const thread = new Thread();

  await thread.feed.run(new Source().pieces(1, new Error('no more')), forever);

  assert.deepEqual([thread.bytes.length, thread.end], [40, { failure: 'the upload broke off: no more' }]);
});

test('a signal breaks it off, also before its first piece', async () => {
  for (const isLate of [false, true]) {
    const [thread, source, leaving] = [new Thread(), new Source(), new AbortController()];
    if (!isLate) leaving.abort(new Error('it was removed'));

    const run = thread.feed.run(source.pieces(1e9), forever, leaving.signal);
    if (isLate) leaving.abort(new Error('it was removed'));
    await run;

    assert.deepEqual(thread.end, { failure: 'the upload broke off: it was removed' });
  }
});

test('work that has failed takes no more bytes, and its source is left', async () => {
  const [thread, source] = [new Thread(), new Source()];
  const work = Promise.withResolvers<never>();
  const run = thread.feed.run(source.pieces(1e9), work.promise);
  while (thread.messages.length === 0) await setImmediate();

  work.reject(new Error('a bad archive'));
  await run;

  assert.equal(thread.end, undefined);
  while (!source.isLeft) await setImmediate();
});
