import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { parsePruneFilters } from './prune-filters.ts';

const now = Temporal.Instant.from('2026-01-02T00:00:00Z');
const candidate = { labels: { keep: '', stage: 'test' }, createdAt: Temporal.Instant.from('2026-01-01T00:00:00Z') };

suite('parsePruneFilters', () => {
  const cases: [filters: object, isMatch: boolean][] = [
    [{}, true],
    [{ label: ['keep'] }, true],
    [{ label: ['keep', 'stage=prod'] }, false],
    [{ 'label!': ['keep'] }, false],
    [{ 'label!': ['other'] }, true],
    [{ 'label!': ['keep', 'other'] }, true],
    [{ 'label!': [] }, true],
    [{ until: ['1h'] }, true],
    [{ until: ['25h'] }, false],
    [{ until: ['2026-01-01T00:00:00Z'] }, true],
    [{ until: ['1735689600'] }, false],
  ];
  for (const [filters, isMatch] of cases) {
    test(`${JSON.stringify(filters)} ${isMatch ? 'matches' : 'matches not'}`, () => {
      assert.equal(parsePruneFilters(JSON.stringify(filters), ['until'], now).matches(candidate), isMatch);
    });
  }

  for (const filters of [{ until: ['1h', '2h'] }, { until: ['soon'] }, { colour: ['red'] }]) {
    test(`${JSON.stringify(filters)} is refused`, () => {
      assert.throws(() => parsePruneFilters(JSON.stringify(filters), ['until'], now), { kind: 'invalid' });
    });
  }
});
