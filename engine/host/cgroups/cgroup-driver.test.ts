import assert from 'node:assert/strict';
import { test } from 'node:test';

import { cgroupPath, isSlice, runtimeCgroupPath, usualCgroupPlace } from './cgroup-driver.ts';

const PATHS = [
  [usualCgroupPlace('cgroupfs', 'docker'), '/docker/c1', '/docker/c1'],
  [usualCgroupPlace('systemd', 'docker'), '/system.slice/docker-c1.scope', 'system.slice:docker:c1'],
  [{ driver: 'cgroupfs', parent: 'own/place', prefix: 'docker' }, '/own/place/c1', '/own/place/c1'],
  [
    { driver: 'systemd', parent: 'a-b-c.slice', prefix: 'docker' },
    '/a.slice/a-b.slice/a-b-c.slice/docker-c1.scope',
    'a-b-c.slice:docker:c1',
  ],
  [{ driver: 'systemd', parent: '-.slice', prefix: 'docker' }, '/docker-c1.scope', '-.slice:docker:c1'],
  // Places of earlier versions.
  [{ driver: 'cgroupfs', parent: '/gantry' }, '/gantry/c1', '/gantry/c1'],
  [{ driver: 'systemd', parent: 'system.slice' }, '/system.slice/gantry-c1.scope', 'system.slice:gantry:c1'],
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
