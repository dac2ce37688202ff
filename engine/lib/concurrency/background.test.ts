import assert from 'node:assert/strict';
import { test } from 'node:test';

import { systemClock, type Clock } from '../clock.ts';
import { Background } from './background.ts';

/** Every wait is over at once. */
const hasty: Clock = { ...systemClock, after: (_milliseconds, callback) => systemClock.after(0, callback) };

function listening(clock: Clock): { background: Background; logged: { message: string; details: object }[] } {
  const logged: { message: string; details: object }[] = [];
  const error = (details: object, message: string): void => void logged.push({ message, details });
  return { background: new Background(clock, { error }), logged };
}

test('a failure is logged with the name of the work, and goes no further', async () => {
  const { background, logged } = listening(hasty);
  const failure = new Error('no');

  await background.run('feed the cat', { cat: 'felix' }, () => Promise.reject(failure)).done;

  assert.deepEqual(logged, [
    { message: 'background work failed: feed the cat', details: { err: failure, work: 'feed the cat', cat: 'felix' } },
  ]);
});

test('synchronous work is done when the call returns, and may throw', () => {
  const { background, logged } = listening(hasty);
  let done = false;

  background.run('set it', {}, () => {
    done = true;
  });
  background.run('break it', {}, () => {
    throw new Error('broken');
  });

  assert.equal(done, true);
  assert.equal(logged.length, 1);
});

test('work that must succeed is tried until it does', async () => {
  const { background, logged } = listening(hasty);
  let attempts = 0;

  await background.untilDone('store it', {}, () => {
    attempts += 1;
    if (attempts < 4) throw new Error('full');
  }).done;

  assert.equal(attempts, 4);
  assert.equal(logged.length, 2);
});

test('the same failure is logged ever more rarely, another one at once', async () => {
  const { background, logged } = listening(hasty);
  let attempts = 0;

  await background.untilDone('store it', {}, () => {
    attempts += 1;
    if (attempts <= 20) throw new Error(attempts === 11 ? 'another' : 'full');
  }).done;

  const told = logged.map(({ details }) => (details as { attempts?: number }).attempts ?? 1);
  assert.deepEqual(told, [1, 2, 4, 8, 11, 12]);
});

test('an end waits for running work, and not for the next attempt', async () => {
  const { background } = listening(systemClock);
  const slow = Promise.withResolvers<void>();
  let finished = false;
  background.run('slow', {}, async () => {
    await slow.promise;
    finished = true;
  });
  background.untilDone('hopeless', {}, () => Promise.reject(new Error('never')));

  const ended = background[Symbol.asyncDispose]();
  slow.resolve();
  await ended;

  assert.equal(finished, true);
  let begun = false;
  background.run('too late', {}, () => void (begun = true));
  assert.equal(begun, false);
});

test('later work can be cancelled', async () => {
  const { background } = listening(systemClock);
  let begun = 0;
  const first = Promise.withResolvers<void>();

  background.after(1, 'cancelled', {}, () => void (begun += 10))[Symbol.dispose]();
  background.after(1, 'kept', {}, () => {
    begun += 1;
    first.resolve();
  });
  await first.promise;

  assert.equal(begun, 1);
});
