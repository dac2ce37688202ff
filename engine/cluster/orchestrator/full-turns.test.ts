import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { SimulatedCluster } from '@gantry/testing/cluster/simulated-cluster.ts';

import type { TaskState } from '../state/records.ts';
import { MAX_CHANGES } from './turn.ts';

const MANY = 3 * MAX_CHANGES;
const replicas = (count: number) => ({ kind: 'replicated', replicas: count }) as const;

/** Turns until the leader wants none now. Returns how many records the largest has changed. */
function turns(cluster: SimulatedCluster): number {
  let largest = 0;
  using _commits = cluster.replica.onCommit(({ changes }) => {
    largest = Math.max(largest, changes.length);
  });
  for (let left = 20; ; left -= 1) {
    const next = cluster.turn();
    if (next === undefined || Temporal.Instant.compare(next, cluster.now) > 0) return largest;
    assert.notEqual(left, 0, 'the turns have no end');
  }
}

/** All tasks that are to be in this state are. */
function obey(cluster: SimulatedCluster, desired: string, state: TaskState): void {
  cluster.change((draft) => {
    for (const task of cluster.tasks().filter((one) => one.desired === desired)) {
      draft.put('task', { ...task, status: { state, timestamp: cluster.now.toString(), message: '' } });
    }
  });
}

function counted(cluster: SimulatedCluster): Record<string, number> {
  return Object.fromEntries(
    Map.groupBy(cluster.tasks(), ({ desired, status }) => `${desired}, ${status.state}`)
      .entries()
      .map(([what, tasks]) => [what, tasks.length]),
  );
}

suite('turns that are full', () => {
  test('a large service is made, updated, and removed in several turns, each of which has an end', () => {
    const cluster = new SimulatedCluster();
    for (const id of ['a', 'b', 'c']) cluster.node(id);

    cluster.service('web', { mode: replicas(MANY) });
    const largest = [turns(cluster)];
    assert.deepEqual(counted(cluster), { 'running, assigned': MANY });
    obey(cluster, 'running', 'running');
    const update = { parallelism: 0, delayNs: 0, failureAction: 'continue' } as const;
    cluster.service('web', { mode: replicas(MANY), template: { image: 'newer' }, update });
    largest.push(turns(cluster));
    assert.deepEqual(counted(cluster), { 'shutdown, running': MANY, 'ready, assigned': MANY });
    obey(cluster, 'shutdown', 'shutdown');
    largest.push(turns(cluster));
    assert.deepEqual(counted(cluster), { 'shutdown, shutdown': MANY, 'running, assigned': MANY });
    cluster.remove('web');
    largest.push(turns(cluster));
    obey(cluster, 'remove', 'shutdown');
    largest.push(turns(cluster));

    assert.deepEqual(counted(cluster), {});
    for (const changes of largest)
      assert.ok(changes > 0 && changes <= 2 * MAX_CHANGES + 3, `${changes} changes in a turn`);
  });

  test('a new leader looks at everything, in several turns', () => {
    const cluster = new SimulatedCluster();
    cluster.node('a');
    for (let at = 0; at < 30; at += 1) cluster.service(`web${at}`, { mode: replicas(1000) });
    turns(cluster);
    obey(cluster, 'running', 'running');
    cluster.change((draft) => {
      for (const { id } of cluster.tasks().filter(({ slot }) => slot === 7)) draft.delete('task', id);
    });
    turns(cluster);
    obey(cluster, 'running', 'running');
    const before = counted(cluster);
    cluster.newLeader();

    turns(cluster);

    assert.deepEqual(before, { 'running, running': 30_000 });
    assert.deepEqual(counted(cluster), before);
  });

  test('a small service does not wait for all of a large one', () => {
    const cluster = new SimulatedCluster();
    cluster.node('a');
    cluster.change((draft) => {
      const made = new SimulatedCluster();
      made.service('large', { mode: replicas(MANY) });
      made.service('small', { mode: replicas(1) });
      for (const kind of ['template', 'service'] as const)
        for (const one of made.replica.all(kind)) draft.put(kind, one);
    });

    cluster.turn();
    cluster.turn();

    assert.equal(cluster.tasks('small').length, 1);
    assert.ok(cluster.tasks('large').length < MANY);
  });

  test('tasks that wait for a node get it in several turns, and those that fit nowhere keep no others waiting', () => {
    const cluster = new SimulatedCluster();
    cluster.service('nowhere', { mode: replicas(MANY), template: { constraints: ['node.id==none'] } });
    cluster.service('waiting', { mode: replicas(MANY) });
    turns(cluster);
    cluster.node('a');
    const largest = turns(cluster);

    assert.ok(largest <= 2 * MAX_CHANGES, `${largest} changes in a turn`);
    assert.equal(cluster.tasks('waiting').filter(({ node }) => node === 'a').length, MANY);
    const reason = 'no suitable node (scheduling constraints not satisfied on 1 node)';
    assert.equal(cluster.tasks('nowhere').filter(({ status }) => status.error === reason).length, MANY);
    cluster.node('b');
    cluster.service('next');
    cluster.node('c');

    assert.equal(cluster.tasks('next')[0]?.status.state, 'assigned');
  });
});
