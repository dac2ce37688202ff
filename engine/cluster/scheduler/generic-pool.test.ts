import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { SimulatedCluster } from '@gantry/testing/cluster/simulated-cluster.ts';

import type { GenericResource } from '../../lib/notations/generic-resources.ts';
import { GenericPool } from './generic-pool.ts';

const NAMES = ['one', 'two', 'three'].map((name) => ({ kind: 'GPU', name }));
const OWN: readonly GenericResource[] = [{ kind: 'SSD', amount: 5 }, ...NAMES];
const ssd = (amount: number): GenericResource => ({ kind: 'SSD', amount });
const gpu = (amount: number): GenericResource => ({ kind: 'GPU', amount });
const named = (name: string): GenericResource => ({ kind: 'GPU', name });

suite('resources that tasks reserve', () => {
  for (const [given, wanted, expected] of [
    [[], [], []],
    [[], [ssd(5)], [ssd(5)]],
    [[], [ssd(6)], undefined],
    [[ssd(3)], [ssd(3)], undefined],
    [[ssd(3)], [ssd(2)], [ssd(2)]],
    [[], [ssd(3), ssd(3)], undefined],
    [[], [ssd(0)], []],
    [[], [gpu(2)], [named('one'), named('two')]],
    [[named('one')], [gpu(2)], [named('two'), named('three')]],
    [[named('one')], [gpu(3)], undefined],
    [[], [named('two'), gpu(2)], [named('two'), named('one'), named('three')]],
    [[named('two')], [named('two')], undefined],
    [[], [{ kind: 'none', amount: 1 }], undefined],
    [[], [{ kind: 'constructor', name: 'x' }], undefined],
  ] as const) {
    test(`${JSON.stringify(wanted)} beside ${JSON.stringify(given)}`, () => {
      const pool = new GenericPool();
      pool.take([named('one'), ssd(1)], 1);
      pool.take([named('one'), ssd(1)], -1);
      pool.take(given, 1);

      assert.deepEqual(pool.choose(OWN, wanted), expected);
    });
  }

  const given = (cluster: SimulatedCluster, service: string): string[] =>
    cluster
      .running(service)
      .flatMap(({ generic = [] }) => generic.map((one) => ('name' in one ? one.name : String(one.amount))));

  test('each task has its own; they are free again at its end, and a new leader knows them', () => {
    const cluster = new SimulatedCluster();
    cluster.node('a');
    cluster.node('b');
    const { description } = cluster.replica.get('node', 'a')!;
    cluster.node('b', { description: { ...description!, resources: { ...description!.resources, generic: OWN } } });
    const resources = { reservations: { generic: [gpu(1)] } };
    cluster.service('web', { mode: { kind: 'replicated', replicas: 4 }, template: { resources } });
    cluster.settle();
    assert.deepEqual(given(cluster, 'web').toSorted(), ['one', 'three', 'two']);

    cluster.newLeader();
    const [first] = cluster.running('web');
    cluster.report(first!, 'failed');
    cluster.settle();
    assert.deepEqual(given(cluster, 'web').toSorted(), ['one', 'three', 'two']);
    assert.ok(cluster.running('web').every(({ node }) => node === 'b'));

    cluster.node('b', {
      description: { ...description!, resources: { ...description!.resources, generic: [named('two')] } },
    });
    cluster.settle();
    assert.deepEqual(given(cluster, 'web'), ['two'], 'the node has the others no more');
  });
});
