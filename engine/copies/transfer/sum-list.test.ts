import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';

import { runAtOnce } from '../../lib/concurrency/slices.ts';
import { SumList } from './sum-list.ts';

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

test('the checksum of many is that of all in the order of their bytes', () => {
  const few = ['b', '', 'é', '~', '0', 'fff', 'a/ü', ...Array.from({ length: 5000 }, (_, at) => sha256(`${at}`))];
  const equal = Array.from({ length: 300 }, () => sha256('x'));
  for (const sums of [[], ['z'], equal, few]) {
    const list = new SumList();
    for (const sum of sums) list.add(sum);

    const sorted = sums.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const expected = createHash('sha256').update(
      sorted.map((sum) => Buffer.from(sum).toString('latin1')).join(','),
      'latin1',
    );
    assert.equal(runAtOnce(list.digest()), expected.digest('hex'));
  }
});

test('names without end are refused', () => {
  const list = new SumList();
  assert.throws(() => Array.from({ length: 9000 }, () => list.add('x'.repeat(1000))), { kind: 'invalid' });
});
