import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { SimulatedCluster } from '@gantry/testing/cluster/simulated-cluster.ts';
import { FOUR, NEW, OLD, config, running, status, updated } from '@gantry/testing/cluster/simulated-update.ts';

/** The newest `count` tasks that run fail. */
function failNewest(cluster: SimulatedCluster, count = 1): void {
  const tasks = cluster.running('web').toSorted((a, b) => Temporal.Instant.compare(a.createdAt, b.createdAt));
  for (const task of tasks.slice(-count)) cluster.report(task, 'failed');
}

suite('updates that start first', () => {
  const first = config({ order: 'start-first', parallelism: 2 });

  test('an old task is told to end when the new one of its place runs', () => {
    const cluster = updated(first);

    cluster.turn();
    const made = cluster.tasks('web').filter(({ status: { state } }) => state === 'assigned');
    assert.deepEqual(
      made.map(({ desired }) => desired),
      ['running', 'running'],
    );
    assert.equal(running(cluster), 'old old old old');

    const [one] = made;
    cluster.report(one!, 'running');
    const ended = cluster.tasks('web').filter(({ desired }) => desired === 'shutdown');
    assert.deepEqual(
      ended.map(({ slot }) => slot),
      [one!.slot],
    );
    cluster.settle();
    assert.equal(running(cluster), 'new new new new');
    assert.equal(status(cluster).state, 'completed');
  });

  test('at no time are there fewer tasks than wanted, over a new leader too', () => {
    const cluster = updated(first);
    for (let n = 0; n < 60; n += 1) {
      cluster.turn();
      for (const task of cluster.tasks()) if (n % 2 === 0) cluster.obey(task);
      if (n % 7 === 0) cluster.newLeader();
      cluster.pass(1);
      assert.ok(cluster.running('web').length >= 4, `step ${n}`);
      assert.ok(cluster.tasks('web').filter(({ desired }) => desired === 'running').length <= 6, `step ${n}`);
    }
    assert.equal(running(cluster), 'new new new new');
  });

  test('a new task that never runs costs none of the old ones', () => {
    const never = { restart: { condition: 'none' } };
    for (const failureAction of ['pause', 'continue'] as const) {
      const cluster = updated(config({ order: 'start-first', failureAction }), {}, never);
      const reject = (): void => {
        for (const task of cluster.tasks()) if (task.status.state === 'assigned') cluster.report(task, 'rejected');
      };
      for (let n = 0; n < 40; n += 1) {
        cluster.turn();
        reject();
        cluster.pass(1);
      }
      assert.equal(running(cluster), 'old old old old');
      assert.equal(status(cluster).state, failureAction === 'pause' ? 'paused' : 'completed');
      assert.equal(cluster.tasks('web').length, failureAction === 'pause' ? 5 : 8);
    }
  });

  test('taken back amid it, the old task stays and the new one ends', () => {
    const cluster = updated(config({ order: 'start-first', parallelism: 0 }));
    cluster.turn();
    const before = new Set(cluster.running('web').map(({ id }) => id));

    cluster.service('web', { ...FOUR, update: config({ order: 'start-first', parallelism: 0 }), template: OLD });
    cluster.settle();

    assert.deepEqual(new Set(cluster.running('web').map(({ id }) => id)), before);
    assert.equal(running(cluster), 'old old old old');
  });

  test('a global service has both for a while on each node', () => {
    const cluster = updated(config({ order: 'start-first', parallelism: 0 }), { mode: { kind: 'global' } });
    cluster.turn();
    assert.equal(cluster.tasks('web').filter(({ desired }) => desired === 'running').length, 6);

    cluster.settle();

    assert.equal(running(cluster), 'new new new');
  });
});

suite('failures amid an update', () => {
  test('of more tasks than the ratio allows stop it, of fewer do not', () => {
    for (const [maxFailureRatio, state] of [
      [0.5, 'completed'],
      [0.49, 'paused'],
    ] as const) {
      const cluster = updated(config({ parallelism: 2, maxFailureRatio, delayNs: 1e9 }));
      cluster.settle(0);
      failNewest(cluster, 2);
      cluster.settle();
      assert.equal(status(cluster).state, state);
    }
  });

  test('one slot that fails again and again counts once', () => {
    const quick = { restart: { delayNs: 0 } };
    const cluster = updated(config({ maxFailureRatio: 0.25, monitorNs: 30e9, delayNs: 1e9 }), {}, quick);
    cluster.settle(0);
    for (let n = 0; n < 3; n += 1) {
      failNewest(cluster);
      cluster.settle(0);
    }
    assert.equal(status(cluster).state, 'updating');
  });

  test('count within the time for which tasks are watched', () => {
    for (const [monitorNs, seconds, state] of [
      [undefined, 4, 'paused'],
      [undefined, 6, 'updating'],
      [30e9, 29, 'paused'],
      [30e9, 31, 'updating'],
      [1e9, 2, 'updating'],
    ] as const) {
      const more = monitorNs === undefined ? {} : { monitorNs };
      const cluster = updated(config({ delayNs: 40e9, ...more }));
      cluster.settle(0);
      cluster.pass(seconds);
      failNewest(cluster);
      cluster.settle(0);
      assert.equal(status(cluster).state, state, `${monitorNs} ${seconds}`);
    }
  });

  test('an update is completed when its last task has been watched', () => {
    const cluster = updated(config({ parallelism: 0, monitorNs: 20e9 }));
    cluster.settle(19);
    assert.equal(status(cluster).state, 'updating');
    cluster.settle(20);
    assert.equal(status(cluster).state, 'completed');
  });

  test('take it back where the client wants that, by the configuration of rollbacks', () => {
    const cluster = updated(config({ failureAction: 'rollback', delayNs: 10e9 }), {
      rollback: config({ parallelism: 0 }),
    });
    cluster.settle(0);
    assert.equal(running(cluster), 'new old old old');
    failNewest(cluster);
    const [failed] = cluster.tasks('web').filter(({ status: { state } }) => state === 'failed');

    assert.deepEqual(
      [status(cluster).state, status(cluster).message],
      ['rollback_started', `update rolled back due to failure or early termination of task ${failed!.id}`],
    );
    cluster.newLeader();
    cluster.settle();

    assert.equal(running(cluster), 'old old old old');
    assert.deepEqual([status(cluster).state, status(cluster).message], ['rollback_completed', 'rollback completed']);
    const { spec, previousSpec } = cluster.replica.get('service', 'web')!;
    assert.deepEqual([spec.template.container.image, previousSpec], ['old', undefined]);
  });

  test('a rollback that fails stops', () => {
    const cluster = updated(config({ failureAction: 'rollback', parallelism: 2 }));
    cluster.settle(0);
    failNewest(cluster, 2);
    cluster.settle(0);
    failNewest(cluster);
    cluster.settle();

    assert.equal(status(cluster).state, 'rollback_paused');
    assert.match(status(cluster).message!, /^rollback paused due to failure or early termination of task task-/);
  });

  test('a rollback to a port that another service has meanwhile stops, and says so', () => {
    const ports = (publishedPort: number) => {
      return { endpoint: { mode: 'vip', ports: [{ protocol: 'tcp', targetPort: 80, publishedPort }] } } as const;
    };
    const cluster = new SimulatedCluster();
    cluster.node('a');
    const update = config({ failureAction: 'rollback' });
    cluster.service('web', { ...ports(8080), update, template: OLD });
    cluster.settle();
    cluster.service('web', { update, template: NEW });
    cluster.service('other', { ...ports(8080), mode: { kind: 'replicated', replicas: 0 } });
    cluster.settle(0);
    failNewest(cluster);
    cluster.settle();

    assert.equal(status(cluster).state, 'paused');
    assert.match(status(cluster).message!, /cannot be rolled back: .*port '8080' is already in use by service 'other'/);
  });
});
