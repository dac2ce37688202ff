import assert from 'node:assert/strict';
import { test } from 'node:test';

import { testSteps } from '@gantry/testing/steps.contract.ts';

import { prunesNamed, volumeListSteps, volumeSteps } from './versions.ts';

const volume = (Labels: Record<string, string> | null) => ({
  ...{ Name: 'a', Driver: 'local', Mountpoint: '/m', CreatedAt: '', Scope: 'local', Options: null },
  Labels,
});
const now = volume({ 'com.docker.volume.anonymous': '', a: 'b' });

testSteps('volumeSteps', volumeSteps, [{ below: '1.42', response: { now, older: volume({ a: 'b' }) } }]);

testSteps('volumeListSteps', volumeListSteps, [
  {
    below: '1.42',
    response: {
      now: { Volumes: [now, volume({ 'com.docker.volume.anonymous': '' })], Warnings: null },
      older: { Volumes: [volume({ a: 'b' }), volume(null)], Warnings: null },
    },
  },
]);

for (const [values, older, newer] of [
  [[], true, false],
  [['1'], 'refused', true],
  [['true'], true, true],
  [['false'], 'refused', false],
  [['0', '1'], 'refused', 'refused'],
  [['x'], 'refused', 'refused'],
] as const) {
  test(`a prune with all=${values.join()} takes named volumes at 1.41: ${older}, at 1.42: ${newer}`, () => {
    const filters = new Map([['all', new Set(values)]]);
    const results = (['1.41', '1.42'] as const).map((version) => {
      try {
        return prunesNamed(filters, version);
      } catch {
        return 'refused';
      }
    });

    assert.deepEqual(results, [older, newer]);
  });
}
