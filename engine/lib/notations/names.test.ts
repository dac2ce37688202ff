import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isClusterName, isContainerName } from './names.ts';

const ROWS: readonly [text: string, cluster: boolean, container: boolean][] = [
  ['web', true, true],
  ['Web-1_b', true, true],
  ['a--b__c', true, true],
  ['x'.repeat(63), true, true],
  ['x'.repeat(64), false, true],
  ['web-', false, true],
  ['_web', false, true],
  ['-web', false, true],
  ['a.b', false, true],
  ['.a', false, false],
  ['', false, false],
  ['a b', false, false],
  ['a\n', false, false],
  ['straße', false, false],
  // Nested repetitions would try all ways to split these, for years.
  [`${'a'.repeat(62)}!`, false, false],
  [`${'a-'.repeat(31)}!`, false, false],
];

for (const [text, cluster, container] of ROWS) {
  test(`${JSON.stringify(text)} as a name: in the cluster ${cluster}, of a container ${container}`, () => {
    assert.deepEqual([isClusterName(text), isContainerName(text)], [cluster, container]);
  });
}
