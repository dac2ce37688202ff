import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Check } from './check.ts';
import { afterResult, atStart, markUnhealthy } from './outcome.ts';
import type { CheckResult, Health } from './store.ts';

const startedAt = Temporal.Instant.from('2024-01-01T00:00:00Z');
const check: Check = {
  ...{ command: ['true'], intervalMs: 1, timeoutMs: 1, startPeriodMs: 10_000, startIntervalMs: 1, retries: 2 },
};

/** `[seconds after the start, exit code]`. */
function after(results: readonly (readonly [number, number])[], from = atStart('one', undefined)): Health {
  return results.reduce(
    (health, [seconds, exitCode]) => afterResult(health, result(seconds, exitCode), check, startedAt),
    from,
  );
}

function result(seconds: number, exitCode: number): CheckResult {
  const start = startedAt.add({ seconds });
  return { start, end: start, exitCode, output: '' };
}

const cases: [string, (readonly [number, number])[], string, number][] = [
  ['nothing is known at first', [], 'starting', 0],
  ['one success is enough', [[1, 0]], 'healthy', 0],
  [
    'failures in the start period do not count',
    [
      [1, 1],
      [2, 1],
      [9, 1],
    ],
    'starting',
    0,
  ],
  [
    'failures after it do',
    [
      [9, 1],
      [10, 1],
    ],
    'starting',
    1,
  ],
  [
    'as many as there are retries make it unhealthy',
    [
      [10, 1],
      [11, 1],
    ],
    'unhealthy',
    2,
  ],
  [
    'after a success the start period is over',
    [
      [1, 0],
      [2, 1],
      [3, 1],
    ],
    'unhealthy',
    2,
  ],
  [
    'a success in between begins anew',
    [
      [11, 1],
      [12, 0],
      [13, 1],
    ],
    'healthy',
    1,
  ],
  [
    'a check that could not be run is a failure',
    [
      [11, -1],
      [12, -1],
    ],
    'unhealthy',
    2,
  ],
  [
    'failures go on being counted',
    [
      [11, 1],
      [12, 1],
      [13, 1],
    ],
    'unhealthy',
    3,
  ],
  [
    'unhealthy ends with a success',
    [
      [11, 1],
      [12, 1],
      [13, 0],
    ],
    'healthy',
    0,
  ],
];
for (const [name, results, status, failingStreak] of cases) {
  test(name, () => {
    const health = after(results);

    assert.deepEqual([health.status, health.failingStreak], [status, failingStreak]);
  });
}

test('the last five results are kept, also over a restart', () => {
  const first = after([
    [11, 1],
    [12, 2],
    [13, 3],
    [14, 4],
    [15, 5],
    [16, 6],
  ]);
  const second = atStart('one', first);

  assert.deepEqual(
    first.log.map(({ exitCode }) => exitCode),
    [2, 3, 4, 5, 6],
  );
  assert.deepEqual([second.status, second.failingStreak, second.log], ['starting', 0, first.log]);
});

test('without checks it is unhealthy, and the same record if it was before', () => {
  const ill = after([
    [11, 1],
    [12, 1],
  ]);

  assert.equal(markUnhealthy(after([[1, 0]])).status, 'unhealthy');
  assert.equal(markUnhealthy(ill), ill);
});
