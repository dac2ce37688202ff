import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { SimulatedCluster } from '@gantry/testing/cluster/simulated-cluster.ts';

const three = (): SimulatedCluster => {
  const cluster = new SimulatedCluster();
  for (const id of ['a', 'b', 'c']) cluster.node(id);
  return cluster;
};
const replicas = (count: number) => ({ kind: 'replicated', replicas: count }) as const;
const AVAILABILITIES = ['active', 'pause', 'drain'] as const;
const slots = (tasks: { slot: number }[]): number[] => tasks.map(({ slot }) => slot).toSorted((a, b) => a - b);
const nodes = (tasks: { node: string }[]): string[] => tasks.map(({ node }) => node).toSorted();

suite('replicated services', () => {
  test('each slot gets a task, spread over the nodes', () => {
    const cluster = three();
    cluster.service('web', { mode: replicas(6) });

    cluster.settle();

    assert.deepEqual(slots(cluster.running('web')), [1, 2, 3, 4, 5, 6]);
    assert.deepEqual(nodes(cluster.running('web')), ['a', 'a', 'b', 'b', 'c', 'c']);
  });

  test('a placeable task is stored with its node at once', () => {
    const cluster = three();
    cluster.service('web');

    cluster.turn();

    assert.deepEqual(
      cluster.tasks().map(({ status }) => status.state),
      ['assigned'],
    );
  });

  test('scaled down, the fullest node loses its tasks first; scaled up, the lowest free slots are taken', () => {
    const cluster = three();
    cluster.service('web', { mode: replicas(3) });
    cluster.settle();
    cluster.setNode('b', 'ready', 'pause');
    cluster.setNode('c', 'ready', 'pause');
    cluster.service('web', { mode: replicas(6) });
    cluster.settle();
    assert.deepEqual(nodes(cluster.running('web')), ['a', 'a', 'a', 'a', 'b', 'c']);

    cluster.service('web', { mode: replicas(3) });
    cluster.settle();
    assert.deepEqual(nodes(cluster.running('web')), ['a', 'b', 'c']);
    assert.deepEqual(cluster.tasks('web').length, 3, 'those that were too many are gone');

    cluster.service('web', { mode: replicas(4) });
    cluster.settle();
    const [first] = slots(cluster.running('web')).filter((slot, at) => slot !== at + 1);
    assert.equal(first, undefined, 'slots 1 to 4');
  });

  test('tasks that do not run go first', () => {
    const cluster = three();
    cluster.service('web', { mode: replicas(3), template: { restart: { delayNs: 100e9 } } });
    cluster.settle();
    cluster.report(
      cluster.running('web').find(({ slot }) => slot === 1)!,
      'failed',
    );
    cluster.turn();

    cluster.service('web', { mode: replicas(2), template: { restart: { delayNs: 100e9 } } });
    cluster.settle();

    assert.deepEqual(slots(cluster.running('web')), [2, 3]);
  });

  test('a removed service leaves nothing', () => {
    const cluster = three();
    cluster.service('web', { mode: replicas(5) });
    cluster.settle();

    cluster.remove('web');
    cluster.settle();

    assert.deepEqual(cluster.tasks(), []);
  });
});

suite('global services', () => {
  test('each node that is ready, not drained and fits has one task', () => {
    const cluster = three();
    cluster.node('d', { availability: 'drain' });
    cluster.node('e', { status: { state: 'down', message: '', address: '' } });
    cluster.node('f', { availability: 'pause' });
    cluster.service('each', { mode: { kind: 'global' }, template: { constraints: ['node.hostname != host-c'] } });

    cluster.settle();

    assert.deepEqual(nodes(cluster.running('each')), ['a', 'b']);
  });

  test('a paused node keeps its task, a drained one does not, a new one gets one', () => {
    const cluster = three();
    cluster.service('each', { mode: { kind: 'global' } });
    cluster.settle();

    cluster.setNode('a', 'ready', 'pause');
    cluster.setNode('b', 'ready', 'drain');
    cluster.node('d');
    cluster.settle();
    assert.deepEqual(nodes(cluster.running('each')), ['a', 'c', 'd']);

    cluster.setNode('b', 'ready', 'active');
    cluster.settle();
    assert.deepEqual(nodes(cluster.running('each')), ['a', 'b', 'c', 'd']);
  });
});

suite('restarts', () => {
  test('the next task waits for the delay', () => {
    const cluster = three();
    cluster.service('web');
    cluster.settle(0);
    const [first] = cluster.running('web');
    cluster.report(first!, 'failed');

    cluster.settle(4);
    assert.deepEqual(cluster.running('web'), []);
    assert.deepEqual(
      cluster.tasks('web').map(({ desired }) => desired),
      ['shutdown', 'ready'],
    );

    cluster.settle(5);
    assert.equal(cluster.running('web').length, 1);
  });

  for (const [condition, state, starts] of [
    ['none', 'failed', 0],
    ['none', 'complete', 0],
    ['on-failure', 'failed', 1],
    ['on-failure', 'rejected', 1],
    ['on-failure', 'complete', 0],
    ['any', 'complete', 1],
  ] as const) {
    test(`after ${state} with the condition ${condition}: ${starts}`, () => {
      const cluster = three();
      cluster.service('web', { template: { restart: { condition } } });
      cluster.settle(0);

      cluster.report(cluster.running('web')[0]!, state);
      cluster.settle();

      assert.equal(cluster.running('web').length, starts);
      assert.equal(cluster.tasks('web').length, 1 + starts);
    });
  }

  test('attempts are counted per slot and template, within the window', () => {
    const cluster = three();
    const restart = { maxAttempts: 2, windowNs: 60e9 };
    const fail = (): number => {
      cluster.report(cluster.running('web')[0]!, 'failed');
      cluster.settle(6);
      return cluster.running('web').length;
    };
    cluster.service('web', { template: { restart } });
    cluster.settle();

    assert.deepEqual([fail(), fail()], [1, 1]);
    cluster.pass(61);
    assert.deepEqual([fail(), fail(), fail()], [1, 1, 0], 'the window has passed once');
    cluster.service('web', { template: { restart, image: 'next' } });
    cluster.settle();
    assert.deepEqual([fail(), fail(), fail()], [1, 1, 0], 'another template begins anew');
  });

  test('of a lost node the tasks go elsewhere after the delay, of a drained one at once', () => {
    const cluster = three();
    cluster.service('web', { mode: replicas(3) });
    cluster.settle();

    cluster.setNode('a', 'down');
    cluster.settle(4);
    assert.deepEqual(nodes(cluster.running('web')), ['b', 'c']);
    cluster.settle(5);
    assert.equal(nodes(cluster.running('web')).join('').replaceAll(/[bc]/g, ''), '');
    assert.equal(cluster.running('web').length, 3);

    cluster.setNode('b', 'ready', 'drain');
    cluster.settle(0);
    assert.deepEqual(nodes(cluster.running('web')), ['c', 'c', 'c']);
  });

  test('a task waits a minute at most for the one before it', () => {
    const cluster = three();
    cluster.service('web');
    cluster.settle();
    const [stuck] = cluster.running('web');
    cluster.setNode(stuck!.node, 'ready', 'drain');
    const others = (): void =>
      cluster
        .tasks()
        .filter(({ id }) => id !== stuck!.id)
        .forEach((task) => cluster.obey(task));
    const [wait] = [cluster.turn(), others(), cluster.turn(), others()];

    assert.deepEqual(cluster.running('web'), []);
    assert.equal(wait!.since(cluster.now).total('seconds'), 60);
    cluster.pass(60);
    cluster.turn();
    others();
    assert.equal(cluster.running('web').length, 1);
  });

  test('the history keeps five tasks of a slot', () => {
    const cluster = three();
    cluster.service('web');
    cluster.settle();
    for (let n = 0; n < 9; n += 1) {
      cluster.report(cluster.running('web')[0]!, 'failed');
      cluster.settle(6);
    }

    assert.equal(cluster.tasks('web').length, 6);
  });
});

suite('updates', () => {
  const image = (name: string) => ({ image: name });
  const imagesOf = (cluster: SimulatedCluster): string[] =>
    cluster
      .running('web')
      .map((task) => cluster.replica.get('template', `web/${task.template}`)!.template.container.image)
      .toSorted();
  const status = (cluster: SimulatedCluster) => cluster.replica.get('service', 'web')?.updateStatus?.state;

  test('as many at a time as the update says, the next after its delay', () => {
    const cluster = three();
    const update = { parallelism: 2, delayNs: 10e9, failureAction: 'pause' } as const;
    cluster.service('web', { mode: replicas(5), update, template: image('old') });
    cluster.settle();
    cluster.service('web', { mode: replicas(5), update, template: image('new') });

    const seen: string[] = [];
    for (let n = 0; n < 4; n += 1) {
      cluster.settle(0);
      seen.push(`${imagesOf(cluster).filter((name) => name === 'new').length} ${status(cluster)}`);
      cluster.pass(10);
    }

    assert.deepEqual(seen, ['2 updating', '4 updating', '5 updating', '5 updating']);
    cluster.settle();
    assert.equal(status(cluster), 'completed');
  });

  test('all at once with a parallelism of 0, one by one without a configuration', () => {
    const cluster = three();
    const update = { parallelism: 0, delayNs: 0, failureAction: 'pause' } as const;
    cluster.service('web', { mode: replicas(4), template: image('1') });
    cluster.settle();
    cluster.service('web', { mode: replicas(4), update, template: image('2') });
    cluster.turn();
    assert.equal(cluster.tasks('web').filter(({ desired }) => desired === 'ready').length, 4);
    cluster.settle();
    cluster.service('web', { mode: replicas(4), template: image('3') });
    cluster.turn();
    assert.equal(cluster.tasks('web').filter(({ desired }) => desired === 'ready').length, 1);
    cluster.settle();
    assert.deepEqual(imagesOf(cluster), ['3', '3', '3', '3']);
  });

  test('a task that fails early pauses the update, or not', () => {
    for (const failureAction of ['pause', 'continue'] as const) {
      const cluster = three();
      const update = { parallelism: 1, delayNs: 20e9, failureAction };
      cluster.service('web', { mode: replicas(3), update, template: image('old') });
      cluster.settle();
      cluster.pass(1);
      cluster.service('web', { mode: replicas(3), update, template: image('new') });
      cluster.settle(0);
      const [broken] = cluster.running('web').filter((task) => task.createdAt === cluster.now.toString());
      cluster.report(broken!, 'failed');

      cluster.settle(300);

      assert.equal(status(cluster), failureAction === 'pause' ? 'paused' : 'completed');
      const updated = imagesOf(cluster).filter((name) => name === 'new').length;
      assert.equal(updated, failureAction === 'pause' ? 1 : 3);
    }
  });

  test('a later update replaces the one under way', () => {
    const cluster = three();
    cluster.service('web', { mode: replicas(3), template: image('1') });
    cluster.settle();
    cluster.service('web', { mode: replicas(3), template: image('2') });
    cluster.settle(0);
    cluster.service('web', { mode: replicas(3), template: image('3') });
    cluster.settle();

    assert.deepEqual(imagesOf(cluster), ['3', '3', '3']);
    assert.equal(status(cluster), 'completed');
  });
});

suite('scheduling', () => {
  const unplaced = (cluster: SimulatedCluster): (string | undefined)[] => [
    ...new Set(
      cluster
        .tasks()
        .filter(({ node }) => node === '')
        .map(({ status }) => status.error),
    ),
  ];

  test('a task without a node says why, per reason with the number of nodes', () => {
    const cluster = three();
    cluster.node('d', { availability: 'drain' });
    cluster.setNode('c', 'ready', 'pause');
    cluster.service('web', { template: { constraints: ['node.id == b', 'node.role == manager'] } });
    cluster.settle();
    assert.deepEqual(unplaced(cluster), [
      'no suitable node (2 nodes not available for new tasks; scheduling constraints not satisfied on 2 nodes)',
    ]);

    const empty = new SimulatedCluster();
    empty.service('web');
    empty.settle();
    assert.deepEqual(unplaced(empty), ['no suitable node']);
  });

  test('reservations are never more than a node has', () => {
    const cluster = three();
    const reservations = { nanoCpus: 1.5e9, memoryBytes: 1e9 };
    cluster.service('web', { mode: replicas(9), template: { resources: { reservations } } });
    cluster.settle();

    assert.deepEqual(nodes(cluster.running('web')), ['a', 'a', 'b', 'b', 'c', 'c']);
    assert.deepEqual(unplaced(cluster), ['no suitable node (insufficient resources on 3 nodes)']);

    cluster.node('d');
    cluster.settle();
    assert.equal(cluster.running('web').length, 8);
  });

  test('a label that no node has is as an empty one, whatever its name', () => {
    const cluster = three();
    cluster.service('web', { template: { constraints: ['node.labels.constructor == x'] } });
    cluster.service('all', { template: { constraints: ['node.labels.constructor != x'] } });
    cluster.settle();

    assert.deepEqual([cluster.running('web').length, cluster.running('all').length], [0, 1]);
  });

  test('a driver that no node has is named as missing', () => {
    const cluster = three();
    const mounts = [{ type: 'volume', source: 'v', target: '/v', volume: { driver: { name: 'x' } } }] as const;
    const container = { image: 'i', mounts };
    cluster.service('web', { template: { container } });
    cluster.settle();

    assert.deepEqual(unplaced(cluster), ['no suitable node (missing plugin on 3 nodes)']);
  });

  test('a node of an earlier version gets no task with settings that it would ignore', () => {
    const cluster = three();
    const mounts = [{ type: 'volume', source: 'v', target: '/v', volume: { subpath: 'one' } }] as const;
    cluster.service('web', { template: { container: { image: 'i', mounts } } });
    cluster.settle();
    assert.deepEqual(unplaced(cluster), ['no suitable node (too old for the settings of the task: 3 nodes)']);

    const description = { ...cluster.replica.get('node', 'b')!.description!, features: ['mounts'] };
    cluster.node('b', { description });
    cluster.settle();

    assert.deepEqual(nodes(cluster.running('web')), ['b']);
  });

  test('a node on which the service keeps failing is the last choice', () => {
    const cluster = new SimulatedCluster();
    cluster.node('a');
    cluster.service('web');
    const fail = (): void => {
      cluster.settle(6);
      cluster.report(cluster.running('web')[0]!, 'failed');
    };
    for (let n = 0; n < 4; n += 1) fail();
    cluster.settle(6);
    cluster.node('b');
    cluster.service('other', { mode: replicas(3), template: { constraints: ['node.id == b'] } });
    fail();
    cluster.settle(6);

    assert.deepEqual(nodes(cluster.running('web')), ['b']);
  });

  test('a node that no longer fits loses its tasks', () => {
    const cluster = three();
    cluster.service('web', { mode: replicas(3), template: { constraints: ['node.labels.disk != slow'] } });
    cluster.settle();

    cluster.node('a', { spec: { name: '', labels: { disk: 'SLOW' }, role: 'worker', availability: 'active' } });
    cluster.settle();

    assert.equal(nodes(cluster.running('web')).includes('a'), false);
    assert.equal(cluster.running('web').length, 3);
    const rejected = cluster.tasks('web').find(({ status }) => status.state === 'rejected');
    assert.equal(rejected?.status.error, 'assigned node no longer meets constraints');
  });
});

test('random histories: never two tasks for a place, and in the end all that is wanted', () => {
  for (let seed = 1; seed <= 30; seed += 1) {
    const cluster = new SimulatedCluster();
    let state = seed;
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
      return (state >> 8) % below;
    };
    const ids = ['a', 'b', 'c', 'd'];
    for (const id of ids) cluster.node(id);
    const names = ['one', 'two', 'all'];
    const first = { parallelism: 2, delayNs: 0, failureAction: 'rollback', order: 'start-first' } as const;
    const steps: (() => void)[] = [
      () => cluster.setNode(ids[random(4)]!, random(3) === 0 ? 'down' : 'ready'),
      () => cluster.setNode(ids[random(4)]!, 'ready', AVAILABILITIES[random(3)]),
      () => cluster.service(names[random(2)]!, { mode: replicas(random(7)), template: { image: `v${random(3)}` } }),
      () => cluster.service('all', { mode: { kind: 'global' }, template: { image: `v${random(3)}` } }),
      () => cluster.service('one', { mode: replicas(4), update: first, template: { image: `v${random(3)}` } }),
      () => cluster.service('all', { mode: { kind: 'global' }, update: first, template: { image: `v${random(3)}` } }),
      () => cluster.remove(names[random(3)]!),
      () => cluster.pass(random(8)),
      () => cluster.newLeader(),
      () => void cluster.turn(),
      () => void cluster.turn(),
      () => cluster.tasks().forEach((task) => random(2) === 0 && cluster.obey(task)),
      () => {
        const task = cluster.tasks().filter(({ status }) => status.state === 'running')[0];
        if (task !== undefined) cluster.report(task, random(2) === 0 ? 'failed' : 'complete');
      },
    ];
    for (let n = 0; n < 300; n += 1) {
      steps[random(steps.length)]!();
      assert.deepEqual(cluster.doubled, [], `seed ${seed}, step ${n}`);
    }
    for (const id of ids) cluster.setNode(id, 'ready', 'active');
    cluster.service('one', { mode: replicas(5), template: { image: 'last' } });
    cluster.remove('two');
    cluster.service('all', { mode: { kind: 'global' }, template: { image: 'last' } });
    cluster.settle(1000);

    assert.equal(cluster.running('one').length, 5, `seed ${seed}`);
    assert.deepEqual(nodes(cluster.running('all')), ids, `seed ${seed}`);
    assert.deepEqual(cluster.tasks('two'), [], `seed ${seed}`);
  }
});
