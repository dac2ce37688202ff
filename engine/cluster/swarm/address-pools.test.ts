import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { SimulatedCluster } from '@gantry/testing/cluster/simulated-cluster.ts';

import { createNetwork } from '../networks/create.ts';
import { freeSubnet, rangesIn } from '../networks/subnets.ts';
import { readAddressPools } from './address-pools.ts';

suite('address pools', () => {
  const refused: [pools: string[], size: number, message: RegExp][] = [
    [['10.0.0.0/16'], 30, /subnet size is out of range: 30/],
    [['10.0.0.0/26'], 0, /Subnet size is too small for pool: 24/],
    [['10.0.0.0/8', 'x'], 0, /invalid base pool x/],
    [['10.0.0.0'], 0, /invalid base pool 10\.0\.0\.0/],
    [['fd00::/8'], 24, /IPv4 only/],
    [Array.from({ length: 5000 }, () => '10.0.0.0/16'), 24, /64 KB at most/],
  ];
  for (const [pools, size, message] of refused) {
    test(`${String(pools).slice(0, 40)} with the size ${size} are refused`, () => {
      assert.throws(() => readAddressPools(pools, size), { kind: 'invalid', message });
    });
  }

  test('a size without pools counts for nothing', () => {
    assert.deepEqual(readAddressPools([], 27), {});
  });

  test('networks get the parts of all pools in order, and none that a node is in', () => {
    const cluster = new SimulatedCluster();
    const pools = readAddressPools(['10.10.0.0/28'], 29);
    const base = {
      id: 'c',
      createdAt: 'now',
      updatedAt: 'now',
      spec: {},
      ca: {},
      peerCa: {},
      revokedPeers: [],
      joinSecrets: {},
    };
    cluster.node('one', { status: { state: 'ready', message: '', address: '10.10.0.3' } });
    cluster.change((draft) => draft.put('cluster', { ...base, ...pools } as never));

    const first = freeSubnet(cluster.replica, rangesIn(cluster.replica));
    assert.deepEqual(first, { subnet: '10.10.0.8/29', gateway: '10.10.0.9' });
    const wanted = { name: 'web', labels: {}, options: {}, internal: false, ranges: [] };
    cluster.change((draft) => void createNetwork(draft, wanted, cluster.now));
    assert.throws(() => freeSubnet(cluster.replica, rangesIn(cluster.replica)), {
      message: /could not find an available, non-overlapping IPv4 address pool/,
    });
  });
});
