import assert from 'node:assert/strict';
import { test } from 'node:test';

import { humanDuration } from './durations.ts';

const HOUR = 3600;
const DAY = 24 * HOUR;

const cases: [number, string][] = [
  [0.5, 'Less than a second'],
  [1, '1 second'],
  [59, '59 seconds'],
  [60, 'About a minute'],
  [119, 'About a minute'],
  [120, '2 minutes'],
  [59 * 60, '59 minutes'],
  [HOUR, 'About an hour'],
  [2 * HOUR, '2 hours'],
  [47 * HOUR, '47 hours'],
  [2 * DAY, '2 days'],
  [13 * DAY, '13 days'],
  [14 * DAY, '2 weeks'],
  [59 * DAY, '8 weeks'],
  [60 * DAY, '2 months'],
  [800 * DAY, '2 years'],
];

for (const [seconds, text] of cases) {
  test(`${seconds} seconds are "${text}"`, () => {
    assert.equal(humanDuration(seconds), text);
  });
}
