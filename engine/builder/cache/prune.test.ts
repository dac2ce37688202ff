import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { cacheFilter, keptBytes, type CacheLimits } from './prune.ts';

const now = Temporal.Instant.from('2026-01-02T00:00:00Z');
const cache = {
  id: 'abcdef',
  type: 'exec.cachemount',
  description: '',
  bytes: 1,
  createdAt: now.subtract({ hours: 30 }),
  usedAt: now.subtract({ hours: 10 }),
  isUsed: false,
} as const;

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

suite('keptBytes of 100 used and 30 free', () => {
  const none: CacheLimits = { maxUsedBytes: 0, minFreeBytes: 0, reservedBytes: 0 };
  const cases: [limits: Partial<CacheLimits>, kept: number][] = [
    [{}, 0],
    [{ reservedBytes: 40 }, 40],
    [{ maxUsedBytes: 60 }, 60],
    [{ maxUsedBytes: 60, reservedBytes: 70 }, 70],
    [{ minFreeBytes: 20 }, 100],
    [{ minFreeBytes: 50 }, 80],
    [{ minFreeBytes: 50, maxUsedBytes: 60 }, 60],
    [{ minFreeBytes: 90, maxUsedBytes: 60 }, 40],
    [{ minFreeBytes: 90, reservedBytes: 50 }, 50],
  ];
  for (const [limits, kept] of cases) {
    test(`${JSON.stringify(limits)} keeps ${kept}`, () => {
      assert.equal(keptBytes({ ...none, ...limits }, { usedBytes: 100, freeBytes: 30 }), kept);
    });
  }
});
