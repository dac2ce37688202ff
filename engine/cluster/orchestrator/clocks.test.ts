import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { SimulatedCluster } from '@gantry/testing/cluster/simulated-cluster.ts';

const HOUR = 3600;
const update = { parallelism: 1, delayNs: 10e9, failureAction: 'pause' } as const;
const wanted = (image: string): object => ({
  mode: { kind: 'replicated', replicas: 3 },
  update,
  template: { image, restart: { delayNs: 10e9 } },
});

function started(): SimulatedCluster {
  const cluster = new SimulatedCluster();
  for (const id of ['a', 'b']) cluster.node(id);
  cluster.service('web', wanted('old'));
  cluster.settle();
  return cluster;
}

/** Seconds until an update is done. */
function secondsOfUpdate(cluster: SimulatedCluster): number {
  const before = cluster.now;
  cluster.service('web', wanted('new'));
  cluster.settle(10 * HOUR);
  assert.equal(cluster.replica.get('service', 'web')?.updateStatus?.state, 'completed');
  return cluster.now.since(before).total('seconds');
}

suite('clocks that differ', () => {
  for (const ahead of [HOUR, -HOUR]) {
    test(`an update takes its time where the clocks of nodes are ${ahead} s ahead`, () => {
      const expected = secondsOfUpdate(started());
      const cluster = started();
      cluster.nodesAheadSeconds = ahead;

      assert.equal(secondsOfUpdate(cluster), expected);
    });
  }

  test('an update goes on under a leader with a clock an hour behind that of the last one', () => {
    const cluster = started();
    cluster.service('web', wanted('new'));
    cluster.settle(1);

    cluster.now = cluster.now.subtract({ seconds: HOUR });
    cluster.newLeader();
    cluster.settle(60);

    assert.equal(cluster.replica.get('service', 'web')?.updateStatus?.state, 'completed');
    assert.equal(cluster.running('web').length, 3);
  });

  test('so does a task that waits for its restart', () => {
    const cluster = started();
    cluster.report(cluster.running('web')[0]!, 'failed');
    cluster.turn();

    cluster.now = cluster.now.subtract({ seconds: HOUR });
    cluster.newLeader();
    cluster.settle(60);

    assert.equal(cluster.running('web').length, 3);
  });
});
