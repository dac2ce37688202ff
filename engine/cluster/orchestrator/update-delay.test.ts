import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { SimulatedCluster } from '@gantry/testing/cluster/simulated-cluster.ts';
import { config, running, status, updated } from '@gantry/testing/cluster/simulated-update.ts';

import { isWanted } from '../state/task-states.ts';

suite('new tasks that end again and again', () => {
  const SLOW = config({ delayNs: 10e9, failureAction: 'continue' });

  /** Seconds at which the slots were replaced, where each new task ends a second after its start. */
  function replacedAt(cluster: SimulatedCluster, seconds: number): number[] {
    const at = new Map<number, number>();
    for (let second = 0; second < seconds; second += 1) {
      for (const task of cluster.running('web')) {
        const isNew = cluster.replica.get('template', `web/${task.template}`)!.template.container.image === 'new';
        const runs = cluster.now.since(task.status.startedAt!).total('seconds');
        if (isNew && runs >= 1) cluster.report(task, 'failed');
      }
      cluster.settle(0);
      for (const { slot, template } of cluster.tasks('web')) {
        const { image } = cluster.replica.get('template', `web/${template}`)!.template.container;
        if (image === 'new' && !at.has(slot)) at.set(slot, second);
      }
      cluster.pass(1);
    }
    return [...at.values()].toSorted((a, b) => a - b);
  }

  test('hold the next place up for the delay, not longer and not less', () => {
    for (const restart of [{}, { delayNs: 0 }, { condition: 'none' }]) {
      const cluster = updated(SLOW, {}, { restart });

      assert.deepEqual(replacedAt(cluster, 50), [0, 10, 20, 30], JSON.stringify(restart));
      assert.equal(status(cluster).state, 'completed');
    }
  });

  test('do so too where no history is kept, and under a new leader', () => {
    const cluster = updated(SLOW, {}, { restart: { delayNs: 0 } });
    cluster.keepHistory(0);
    cluster.newLeader();

    assert.deepEqual(replacedAt(cluster, 50), [0, 10, 20, 30]);
    cluster.pass(60);
    cluster.settle(0);
    assert.equal(cluster.tasks('web').length, 4);
  });
});

suite('new tasks on a node that is lost', () => {
  test('hold up no other place: the replacement counts', () => {
    const cluster = updated(config({ delayNs: 1e9 }));
    cluster.turn();
    for (const task of cluster.tasks('web')) if (!isWanted(task.desired)) cluster.report(task, 'shutdown');
    const made = cluster.tasks('web').find(({ status: { state } }) => state === 'assigned')!;

    cluster.setNode(made.node, 'down');
    cluster.settle();

    assert.equal(running(cluster), 'new new new new');
    assert.equal(status(cluster).state, 'completed');
  });
});

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

  test('so it does where the node of a new task is lost', () => {
    const cluster = started();
    cluster.service('web', wanted('new'));
    cluster.turn();
    for (const task of cluster.tasks('web')) if (!isWanted(task.desired)) cluster.report(task, 'shutdown');
    const made = cluster.tasks('web').find(({ status: { state } }) => state === 'assigned')!;

    cluster.now = cluster.now.subtract({ seconds: HOUR });
    cluster.newLeader();
    cluster.setNode(made.node, 'down');
    cluster.settle(120);

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
