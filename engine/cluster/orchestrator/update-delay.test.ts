import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import type { SimulatedCluster } from '@gantry/testing/cluster/simulated-cluster.ts';
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
