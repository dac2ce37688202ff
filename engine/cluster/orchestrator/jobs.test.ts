import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { SimulatedCluster } from '@gantry/testing/cluster/simulated-cluster.ts';

import type { Stored } from '../state/records.ts';
import type { ServiceMode } from '../state/service-spec.ts';
import { hasEnded, isWanted } from '../state/task-states.ts';

type Task = Stored<'task'>;

const job = (maxConcurrent: number, totalCompletions = maxConcurrent): ServiceMode => ({
  ...{ kind: 'replicated-job', maxConcurrent, totalCompletions },
});
const EACH: ServiceMode = { kind: 'global-job' };
const AVAILABILITIES = ['active', 'pause', 'drain'] as const;

function twoNodes(): SimulatedCluster {
  const cluster = new SimulatedCluster();
  for (const id of ['a', 'b']) cluster.node(id);
  return cluster;
}

function present(cluster: SimulatedCluster, name = 'job'): Task[] {
  const iteration = cluster.replica.get('service', name)?.job?.iteration;
  return cluster.tasks(name).filter(({ jobIteration }) => jobIteration === iteration);
}

function complete(cluster: SimulatedCluster, name = 'job'): Task[] {
  return present(cluster, name).filter(({ status }) => status.state === 'complete');
}

/** Ends each running task until nothing runs any more; returns how many ran at a time. */
function runAll(cluster: SimulatedCluster, state: 'complete' | 'failed' = 'complete'): number[] {
  const counts: number[] = [];
  for (let n = 0; n < 20; n += 1) {
    cluster.settle();
    const running = cluster.running('job');
    if (running.length === 0) return counts;
    counts.push(running.length);
    for (const task of running) cluster.report(task, state);
  }
  return counts;
}

suite('replicated jobs', () => {
  for (const [most, total, counts] of [
    [2, 5, [2, 2, 1]],
    [1, 3, [1, 1, 1]],
    [5, 3, [3]],
    [3, 3, [3]],
    [2, 0, []],
    [0, 2, []],
  ] as const) {
    test(`${total} completions, ${most} at a time: ${JSON.stringify(counts)}`, () => {
      const cluster = twoNodes();
      cluster.service('job', { mode: job(most, total) });

      assert.deepEqual(runAll(cluster), counts);

      const ends = most === 0 ? 0 : total;
      const slots = complete(cluster).map(({ slot }) => slot);
      assert.deepEqual(
        slots.toSorted((a, b) => a - b),
        Array.from({ length: ends }, (_, at) => at + 1),
      );
      assert.ok(cluster.tasks('job').every(({ desired }) => desired === 'complete'));
    });
  }

  for (const [restart, ends] of [
    [{ condition: 'none' }, [1]],
    [{ condition: 'on-failure', maxAttempts: 2 }, [1, 1, 1]],
    [{ condition: 'any', maxAttempts: 1 }, [1, 1]],
  ] as const) {
    test(`failures with ${JSON.stringify(restart)}: ${ends.length} tasks, then none, until the next iteration`, () => {
      const cluster = twoNodes();
      const spec = { mode: job(1, 3), template: { restart } };
      cluster.service('job', spec);
      assert.deepEqual(runAll(cluster, 'failed'), ends);
      cluster.newLeader();
      assert.deepEqual(runAll(cluster, 'failed'), []);

      cluster.service('job', spec);

      assert.deepEqual(runAll(cluster, 'failed'), ends, 'attempts count anew');
    });
  }

  test('a new leader goes on in the middle', () => {
    const cluster = twoNodes();
    cluster.service('job', { mode: job(2, 5) });
    cluster.settle();
    cluster.report(cluster.running('job')[0]!, 'complete');

    cluster.newLeader();

    assert.deepEqual(runAll(cluster), [2, 2]);
    assert.equal(complete(cluster).length, 5);
  });

  test('a task on a lost node is done by another one; its late completion ends that', () => {
    const cluster = twoNodes();
    cluster.service('job', { mode: job(1) });
    cluster.settle();
    const [lost] = cluster.running('job');
    cluster.setNode(lost!.node, 'down');
    cluster.settle();
    assert.notEqual(cluster.running('job')[0]!.id, lost!.id);

    cluster.report(cluster.replica.get('task', lost!.id)!, 'complete');
    cluster.settle();

    assert.deepEqual(cluster.running('job'), []);
    assert.deepEqual(
      complete(cluster).map(({ id }) => id),
      [lost!.id],
    );
  });

  test('an update runs the job again: unfinished tasks go, complete ones become history', () => {
    const cluster = twoNodes();
    cluster.keepHistory(1);
    cluster.service('job', { mode: job(2, 3) });
    cluster.settle();
    cluster.report(cluster.running('job')[0]!, 'complete');
    for (let n = 0; n < 3; n += 1) {
      cluster.service('job', { mode: job(2, 3) });
      assert.deepEqual(runAll(cluster), [2, 1]);
    }

    const iterations = cluster.tasks('job').map(({ jobIteration }) => jobIteration!);
    assert.deepEqual(
      iterations.toSorted((a, b) => a - b),
      [2, 2, 2, 3, 3, 3],
    );
    assert.equal(cluster.replica.get('service', 'job')?.updateStatus, undefined);
  });
});

suite('global jobs', () => {
  const nodes = (tasks: readonly Task[]): string[] => tasks.map(({ node }) => node).toSorted();

  test('run once on each node that fits; a paused or drained one follows when it is active', () => {
    const cluster = twoNodes();
    cluster.node('c', { availability: 'drain' });
    cluster.node('d');
    cluster.service('job', { mode: EACH, template: { constraints: ['node.id != d'] } });
    runAll(cluster);
    assert.deepEqual(nodes(complete(cluster)), ['a', 'b']);

    cluster.setNode('c', 'ready', 'active');
    cluster.setNode('a', 'ready', 'drain');
    runAll(cluster);

    assert.deepEqual(nodes(complete(cluster)), ['a', 'b', 'c']);
  });

  test('a node that joins while the job runs has a part in it, one that joins later in the next iteration', () => {
    const cluster = twoNodes();
    cluster.service('job', { mode: EACH });
    cluster.settle();
    cluster.pass(60);
    cluster.node('c');
    runAll(cluster);
    assert.deepEqual(nodes(complete(cluster)), ['a', 'b', 'c']);

    cluster.pass(60);
    cluster.node('d');
    cluster.newLeader();
    runAll(cluster);
    assert.deepEqual(nodes(complete(cluster)), ['a', 'b', 'c']);

    cluster.service('job', { mode: EACH });
    runAll(cluster);
    assert.deepEqual(nodes(complete(cluster)), ['a', 'b', 'c', 'd']);
  });
});

test('random histories of jobs: never too many at a time, and in the end all completions', () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const cluster = twoNodes();
    let state = seed;
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return (state >> 8) % below;
    };
    cluster.service('job', { mode: job(2, 6) });
    cluster.service('each', { mode: EACH });
    const steps: (() => void)[] = [
      () => cluster.setNode(['a', 'b'][random(2)]!, random(3) === 0 ? 'down' : 'ready'),
      () => cluster.setNode(['a', 'b'][random(2)]!, 'ready', AVAILABILITIES[random(3)]),
      () => void (random(5) === 0 && cluster.service('job', { mode: job(1 + random(4), random(7)) })),
      () => void (random(5) === 0 && cluster.service('each', { mode: EACH })),
      () => cluster.pass(random(8)),
      () => cluster.newLeader(),
      () => cluster.tasks().forEach((task) => random(2) === 0 && cluster.obey(task)),
      () => {
        const running = cluster.tasks().filter(({ status }) => status.state === 'running');
        const task = running[random(running.length || 1)];
        if (task !== undefined) cluster.report(task, random(3) === 0 ? 'failed' : 'complete');
      },
    ];
    for (let n = 0; n < 200; n += 1) {
      steps[random(steps.length)]!();
      const { mode } = cluster.replica.get('service', 'job')!.spec;
      const most = mode.kind === 'replicated-job' ? mode.maxConcurrent : 0;
      const open = present(cluster).filter(({ status, desired }) => isWanted(desired) && !hasEnded(status.state));
      assert.ok(open.length <= most, `seed ${seed}, step ${n}: ${open.length} of ${most}`);
      assert.deepEqual(cluster.doubled, [], `seed ${seed}, step ${n}`);
    }
    for (const id of ['a', 'b']) cluster.setNode(id, 'ready', 'active');
    cluster.service('job', { mode: job(2, 5) });
    cluster.service('each', { mode: EACH });
    for (let n = 0; n < 10; n += 1) {
      cluster.settle();
      for (const name of ['job', 'each']) for (const task of cluster.running(name)) cluster.report(task, 'complete');
    }

    assert.deepEqual([complete(cluster).length, complete(cluster, 'each').length], [5, 2], `seed ${seed}`);
    assert.ok(
      cluster.tasks().every(({ status }) => hasEnded(status.state)),
      `seed ${seed}`,
    );
  }
});
