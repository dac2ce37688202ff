import assert from 'node:assert/strict';
import { test } from 'node:test';

import { histogramText, metricText } from './text.ts';

test('a label may have quotes, backslashes and ends of lines', () => {
  const text = metricText('info', 'gauge', 'What this is.', [[{ os: 'a "b" \\ c\nd', type: 'linux' }, 1]]);

  assert.equal(text, '# HELP info What this is.\n# TYPE info gauge\ninfo{os="a \\"b\\" \\\\ c\\nd",type="linux"} 1\n');
});

test('a bucket counts the values of those before it', () => {
  const counts = [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4];

  const lines = histogramText('s', 'Time.', 'action', new Map([['start', { counts, sumSeconds: 60.5 }]])).split('\n');

  assert.deepEqual(lines.slice(2, 5), [
    's_bucket{action="start",le="0.005"} 2',
    's_bucket{action="start",le="0.01"} 3',
    's_bucket{action="start",le="0.025"} 3',
  ]);
  assert.deepEqual(lines.slice(-4), [
    's_bucket{action="start",le="+Inf"} 7',
    's_sum{action="start"} 60.5',
    's_count{action="start"} 7',
    '',
  ]);
});
