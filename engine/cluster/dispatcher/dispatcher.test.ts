import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { SimulatedCluster } from '@gantry/testing/cluster/simulated-cluster.ts';
import { pino } from 'pino';

import type { Batches } from '../leader/batches.ts';
import { Turns } from '../leader/turns.ts';
import { Draft } from '../state/draft.ts';
import type { TaskState } from '../state/records.ts';
import type { FromLeader } from '../wire/schemas.ts';
import type { TasksMessage } from '../wire/task-messages.ts';
import { Dispatcher } from './dispatcher.ts';
import { applyReport } from './reports.ts';

const STATUS = { timestamp: '2026-01-01T00:00:01Z', message: '' };

/** Two nodes, and a service of two tasks that has credentials. */
function cluster(): SimulatedCluster {
  const made = new SimulatedCluster();
  const dates = { createdAt: made.now.toString(), updatedAt: made.now.toString() };
  made.change((draft) => {
    const empty = { certificate: '', key: '' };
    const raft = {
      snapshotInterval: 1,
      keepOldSnapshots: 0,
      logEntriesForSlowFollowers: 1,
      heartbeatTick: 1,
      electionTick: 10,
    };
    draft.put('cluster', {
      ...dates,
      id: 'c',
      ca: empty,
      peerCa: empty,
      revokedPeers: [],
      joinSecrets: { worker: '', manager: '' },
      spec: {
        name: 'default',
        labels: {},
        taskHistoryRetentionLimit: 5,
        raft,
        heartbeatPeriodNs: 5e9,
        nodeCertExpiryNs: 1e18,
        externalCas: [],
        logDriver: { name: 'syslog', options: { tag: 'x' } },
      },
    });
  });
  made.node('a');
  made.node('b');
  made.service('web', { mode: { kind: 'replicated', replicas: 2 } });
  made.change((draft) => draft.put('service', { ...draft.get('service', 'web')!, registryAuth: 'c2VjcmV0' }));
  made.turn();
  return made;
}

/** A dispatcher over it whose turns are stored at once. */
function dispatcherOf(made: SimulatedCluster): Dispatcher {
  const batches = {
    store: async (changes: Draft['changes']) => {
      const all = [...changes];
      await Promise.resolve();
      made.change((draft) => {
        for (const { kind, record } of all) if (record !== undefined) draft.put(kind, record);
      });
    },
  } as unknown as Batches;
  const clock = { now: () => made.now, after: () => ({ [Symbol.dispose]: () => undefined }) };
  const decisions = () => ({ run: () => undefined });
  const log = pino({ enabled: false });
  const turns = new Turns({ batches, replica: made.replica, clock, log, decisions }, ({ message }) =>
    assert.fail(message),
  );
  return new Dispatcher({ replica: made.replica, turns });
}

const tasksIn = (messages: readonly FromLeader[]): TasksMessage[] =>
  messages.filter((message) => message.say === 'tasks');

suite('the dispatcher', () => {
  test('a node is told its own tasks only, with their template and credentials, then that these are all', () => {
    const made = cluster();
    using dispatcher = dispatcherOf(made);
    const heard: FromLeader[] = [];

    dispatcher.begin('a', (message) => heard.push(message), true);

    const [first, last, ...more] = heard;
    assert.deepEqual(more, []);
    assert.deepEqual(last, { say: 'allTasks' });
    assert.ok(first?.say === 'tasks');
    assert.deepEqual(
      first.tasks.map(({ assignment }) => assignment.id),
      [...made.replica.tasksOn('a')].map(({ id }) => id),
    );
    assert.equal(first.tasks.length, 1);
    assert.equal(first.tasks[0]!.auth, 'c2VjcmV0');
    const template = first.templates[first.tasks[0]!.assignment.template]!;
    assert.equal(template.container.image, 'busybox');
    assert.deepEqual(template.logDriver, { name: 'syslog', options: { tag: 'x' } });
    assert.ok(!('constraints' in template) && !('restart' in template));
  });

  test('afterwards come changes: changed assignments, and removed ones; states of its own are no news', () => {
    const made = cluster();
    using dispatcher = dispatcherOf(made);
    const heard: FromLeader[] = [];
    dispatcher.begin('a', (message) => heard.push(message), true);
    heard.length = 0;
    const [task] = [...made.replica.tasksOn('a')];

    made.report(task!, 'running');
    assert.deepEqual(heard, []);
    made.change((draft) => draft.put('task', { ...draft.get('task', task!.id)!, desired: 'shutdown' }));
    made.change((draft) => draft.delete('task', task!.id));

    const [changed, gone, ...more] = tasksIn(heard);
    assert.deepEqual(more, []);
    assert.equal(changed?.tasks[0]?.assignment.desired, 'shutdown');
    assert.equal(changed?.tasks[0]?.auth, undefined); // it has its image
    assert.deepEqual(changed?.templates, {});
    assert.deepEqual(gone?.gone, [task!.id]);
  });

  test('many tasks are told in several messages, the template in the first', () => {
    const made = cluster();
    made.service('web', { mode: { kind: 'replicated', replicas: 1000 } });
    made.turn();
    using dispatcher = dispatcherOf(made);
    const heard: FromLeader[] = [];

    dispatcher.begin('a', (message) => heard.push(message), true);

    const messages = tasksIn(heard);
    assert.deepEqual(
      messages.map(({ tasks }) => tasks.length),
      [200, 200, 100],
    );
    assert.deepEqual(
      messages.map(({ templates }) => Object.keys(templates).length),
      [1, 0, 0],
    );
  });

  test('a report is acknowledged when it is stored', async () => {
    const made = cluster();
    using dispatcher = dispatcherOf(made);
    const heard: FromLeader[] = [];
    const [task] = [...made.replica.tasksOn('a')];
    const tasks = [{ id: task!.id, status: { ...STATUS, state: 'running' as const } }];

    await dispatcher.hear('a', { say: 'report', number: 7, tasks }, (message) => heard.push(message));

    assert.deepEqual(heard, [{ say: 'ack', number: 7 }]);
    assert.equal(made.replica.get('task', task!.id)?.status.state, 'running');
  });
});

suite('reports', () => {
  const after = (before: TaskState, said: TaskState, node: string): TaskState => {
    const made = cluster();
    const [task] = [...made.replica.tasksOn('a')];
    made.change((draft) => draft.put('task', { ...task!, status: { ...task!.status, state: before } }));
    const draft = new Draft(made.replica);
    const tasks = [{ id: task!.id, status: { ...STATUS, state: said } }];
    applyReport(draft, node, { say: 'report', number: 1, tasks }, made.now);
    return draft.get('task', task!.id)!.status.state;
  };

  test('a task never goes back, and only its own node speaks for it', () => {
    const cases: [before: TaskState, said: TaskState, node: string, expected: TaskState][] = [
      ['assigned', 'running', 'a', 'running'],
      ['assigned', 'running', 'b', 'assigned'],
      ['running', 'preparing', 'a', 'running'],
      ['running', 'failed', 'a', 'failed'],
      ['rejected', 'shutdown', 'a', 'rejected'],
      ['orphaned', 'running', 'a', 'orphaned'],
    ];

    for (const [before, said, node, expected] of cases) {
      assert.equal(after(before, said, node), expected, `${before}, ${said} by ${node}`);
    }
  });

  test('the container and the time of the start are kept at the end; an unknown task is no error', () => {
    const made = cluster();
    const [task] = [...made.replica.tasksOn('a')];
    const container = { id: 'x', pid: 1, exitCode: 0 };
    const draft = new Draft(made.replica);
    const say = (id: string, status: object): void =>
      applyReport(
        draft,
        'a',
        { say: 'report', number: 1, tasks: [{ id, status: { ...STATUS, ...status } as never }] },
        made.now,
      );

    say(task!.id, { state: 'running', startedAt: STATUS.timestamp, container });
    say(task!.id, { state: 'failed', error: 'task: non-zero exit (1)' });
    say('unknown', { state: 'running' });

    const { status } = draft.get('task', task!.id)!;
    assert.deepEqual(status, {
      ...STATUS,
      state: 'failed',
      error: 'task: non-zero exit (1)',
      startedAt: STATUS.timestamp,
      container,
    });
  });
});
