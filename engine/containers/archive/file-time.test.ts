import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fileTime } from './file-time.ts';

test('a time within the calendar keeps its nanoseconds', () => {
  assert.equal(fileTime(1_000_000_001n), '1970-01-01T00:00:01.000000001Z');
});

test('times beyond the calendar become its first and its last one', () => {
  const times = [-(2n ** 63n) * 1_000_000_000n, (2n ** 63n - 1n) * 1_000_000_000n].map(fileTime);

  assert.deepEqual(times, ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999999999Z']);
});
