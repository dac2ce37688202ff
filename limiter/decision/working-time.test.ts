import assert from 'node:assert/strict';
import { test } from 'node:test';

import { WorkingTime } from './working-time.ts';

test('of a time in which the process stood still hardly anything counts', () => {
  let real = 1000;
  const time = new WorkingTime(() => real);
  time.start();
  const started = time.now();

  real += 60;
  const going = time.now() - started;
  real += 3_600_000;
  const stalled = time.now() - started;
  time.look();
  real += 70;
  const after = time.now() - started;
  time.stop();

  assert.equal(going, 60);
  assert.equal(stalled, 100);
  assert.equal(after, 170);
});

test('while nothing is timed all of it counts, and it is not looked at', () => {
  let real = 0;
  const time = new WorkingTime(() => real);

  real = 5000;
  const before = time.now();
  time.start();
  time.stop();
  real = 9000;

  assert.equal(before, 5000);
  assert.equal(time.now(), 9000);
});
