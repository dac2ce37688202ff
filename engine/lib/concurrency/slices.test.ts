import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runAtOnce, runInSlices } from './slices.ts';
import { sortInSteps } from './sort-in-steps.ts';

function* countUntil(isOver: () => boolean): Generator<void, number> {
  for (let steps = 1; ; steps += 1) {
    if (isOver()) return steps;
    yield;
  }
}

test('other work has its turn between the slices of long work', async () => {
  let hadItsTurn = false;
  setImmediate(() => (hadItsTurn = true));

  const steps = await runInSlices(countUntil(() => hadItsTurn));

  assert.ok(steps > 1);
});

test('long work ends with its signal', async () => {
  const leaving = new AbortController();
  setImmediate(() => leaving.abort(new Error('the client has gone')));

  await assert.rejects(
    runInSlices(
      countUntil(() => false),
      leaving.signal,
    ),
    /the client has gone/,
  );
});

test('texts are sorted in steps as toSorted sorts them', () => {
  const texts = Array.from({ length: 10_000 }, (_, at) => `${(at * 7919) % 5000}é${String.fromCharCode(at)}`);

  assert.deepEqual(runAtOnce(sortInSteps(texts)), texts.toSorted());
  assert.deepEqual(runAtOnce(sortInSteps([])), []);
});
