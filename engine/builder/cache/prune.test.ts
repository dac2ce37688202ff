import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { cacheFilter } from './prune.ts';

const now = Temporal.Instant.from('2026-01-02T00:00:00Z');
const cache = {
  id: 'abcdef',
  bytes: 1,
  createdAt: now.subtract({ hours: 30 }),
  usedAt: now.subtract({ hours: 10 }),
  isUsed: false,
};

suite('cacheFilter', () => {
  const cases: [filters: object, isMatch: boolean][] = [
    [{}, true],
    [{ until: ['9h'] }, true],
    [{ until: ['11h'] }, false],
    [{ 'unused-for': ['11h'] }, false],
    [{ id: ['abc'] }, true],
    [{ id: ['b'] }, false],
    [{ type: ['exec.cachemount'] }, true],
    [{ type: ['regular'] }, false],
    [{ inuse: ['true'] }, false],
    [{ inuse: ['false'] }, true],
    [{ shared: ['true'] }, false],
    [{ private: ['true'] }, true],
  ];
  for (const [filters, isMatch] of cases) {
    test(`${JSON.stringify(filters)} ${isMatch ? 'matches' : 'matches not'}`, () => {
      assert.equal(cacheFilter(JSON.stringify(filters), now)(cache), isMatch);
    });
  }

  test('an unknown filter is refused', () => {
    assert.throws(() => cacheFilter('{"colour":["red"]}', now), { kind: 'invalid' });
  });
});
