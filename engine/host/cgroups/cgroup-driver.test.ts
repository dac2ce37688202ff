import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cgroupPath, isSlice, runtimeCgroupPath } from './cgroup-driver.ts';

const PATHS = [
  [{ driver: 'cgroupfs', parent: '/gantry' }, '/gantry/c1', '/gantry/c1'],
  [{ driver: 'cgroupfs', parent: 'own/place' }, '/own/place/c1', '/own/place/c1'],
  [{ driver: 'systemd', parent: 'system.slice' }, '/system.slice/gantry-c1.scope', 'system.slice:gantry:c1'],
  [
    { driver: 'systemd', parent: 'a-b-c.slice' },
    '/a.slice/a-b.slice/a-b-c.slice/gantry-c1.scope',
    'a-b-c.slice:gantry:c1',
  ],
  [{ driver: 'systemd', parent: '-.slice' }, '/gantry-c1.scope', '-.slice:gantry:c1'],
] as const;

for (const [place, path, told] of PATHS) {
  test(`${place.driver} puts a container of ${place.parent} into ${path}`, () => {
    assert.equal(cgroupPath(place, 'c1'), path);
    assert.equal(runtimeCgroupPath(place, 'c1'), told);
  });
}

test('a slice has the form of systemd', () => {
  const names = ['a.slice', 'a-b.slice', '-.slice', 'a', '.slice', 'a--b.slice', '-a.slice', 'a-.slice', '/a.slice'];

  assert.deepEqual(names.filter(isSlice), ['a.slice', 'a-b.slice', '-.slice']);
});
