import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Summary } from '@gantry/client/containers.ts';
import type { NetworkWire } from '@gantry/client/networks.ts';

import { layoutMap, type NetworkMap } from './map-layout.ts';

const networks = ['back', 'bridge', 'front', 'none'].map((Name) => ({ Name }) as NetworkWire);

function container(name: string, ...of: string[]): Summary {
  const Networks = Object.fromEntries(
    of.map((network, index) => [network, { IPAddress: `10.0.${index}.2`, GlobalIPv6Address: '' }]),
  );
  return { Id: `id-${name}`, Names: [`/${name}`], NetworkSettings: { Networks } } as unknown as Summary;
}

function overlaps(places: NetworkMap['networks'] | NetworkMap['containers']): boolean {
  return places.some(({ top }, index) => index > 0 && top < places[index - 1]!.top + places[index - 1]!.height);
}

test('containers are grouped by their first network, and each line joins one of its networks', () => {
  const map = layoutMap(networks, [
    container('web', 'front', 'back'),
    container('db', 'back'),
    container('a', 'front'),
  ]);

  assert.deepEqual(
    map.containers.map(({ name }) => name),
    ['db', 'web', 'a'],
  );
  assert.deepEqual(
    map.lines.map(({ key }) => key),
    ['id-db back', 'id-web back', 'id-web front', 'id-a front'],
  );
  assert.deepEqual(
    map.networks.map(({ network, members }) => [network.Name, members]),
    [
      ['back', 2],
      ['front', 2],
    ],
  );
  assert.deepEqual(map.containers[1]!.networks, [
    { network: 'back', addresses: ['10.0.1.2'] },
    { network: 'front', addresses: ['10.0.0.2'] },
  ]);
});

test('nothing overlaps, also where many networks share one container', () => {
  const map = layoutMap(networks, [container('all', 'back', 'bridge', 'front'), container('one', 'bridge')]);

  assert.equal(overlaps(map.networks), false);
  assert.equal(overlaps(map.containers), false);
  assert.ok(map.networks.every(({ top, height }) => top >= 0 && top + height <= map.height));
});

test('containers without a network, in none or in an unknown one are left out', () => {
  const map = layoutMap(networks, [container('alone'), container('cut', 'none'), container('late', 'gone')]);

  assert.deepEqual(map, { networks: [], containers: [], lines: [], height: 0 });
});
