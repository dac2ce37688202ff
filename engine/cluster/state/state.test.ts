import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { systemClock } from '../../lib/clock.ts';
import { Draft, idOf, refuseOldVersion } from './draft.ts';
import { keyOf, recordOfKey } from './keys.ts';
import type { Kind, Records, Stored, TaskRecord } from './records.ts';
import { Replica, type Commit } from './replica.ts';
import type { Change } from './view.ts';

const NOW = '2026-11-22T12:00:00Z';

const task = (id: string, over: Partial<TaskRecord> = {}): TaskRecord => ({
  id,
  createdAt: NOW,
  updatedAt: NOW,
  service: 'web',
  slot: 1,
  node: '',
  template: 'one',
  desired: 'running',
  status: { state: 'new', timestamp: NOW, message: '' },
  addresses: [],
  ...over,
});
const put = (record: TaskRecord): Change => ({ kind: 'task', id: record.id, record });
const ids = (records: IteratorObject<{ id: string }>): string[] => [...records].map(({ id }) => id).toSorted();

suite('the replica', () => {
  test('a record has the revision of its last change as its version', () => {
    const replica = new Replica(systemClock);

    replica.apply({ revision: 4, changes: [put(task('a')), put(task('b'))] });
    replica.apply({ revision: 7, changes: [put(task('a', { node: 'one' }))] });

    assert.equal(replica.get('task', 'a')?.version, 7);
    assert.equal(replica.get('task', 'b')?.version, 4);
  });

  test('an older revision changes nothing: a commit comes from the leader itself and from the watch', () => {
    const replica = new Replica(systemClock);
    const told: Commit[] = [];
    using _listener = replica.onCommit((commit) => told.push(commit));

    replica.apply({ revision: 4, changes: [put(task('a', { node: 'one' }))] });
    replica.apply({ revision: 4, changes: [put(task('a', { node: 'two' }))] });

    assert.deepEqual(ids(replica.tasksOn('one')), ['a']);
    assert.equal(told.length, 1);
  });

  test('tasks are found by service and by node, also after they moved or went', () => {
    const replica = new Replica(systemClock);

    replica.apply({ revision: 1, changes: [put(task('a', { node: 'one' })), put(task('b', { service: 'db' }))] });
    replica.apply({ revision: 2, changes: [put(task('a', { node: 'two' })), put(task('c', { node: 'two' }))] });
    replica.apply({ revision: 3, changes: [{ kind: 'task', id: 'c', record: undefined }] });

    assert.deepEqual(ids(replica.tasksOn('one')), []);
    assert.deepEqual(ids(replica.tasksOn('two')), ['a']);
    assert.deepEqual(ids(replica.tasksOf('web')), ['a']);
    assert.deepEqual(ids(replica.tasksOf('db')), ['b']);
  });

  test('a reset reports new, changed and removed records, and nothing else', () => {
    const replica = new Replica(systemClock);
    replica.apply({ revision: 3, changes: [put(task('same')), put(task('changed')), put(task('gone'))] });
    const told: Commit[] = [];
    using _listener = replica.onCommit((commit) => told.push(commit));
    const entry = (id: string, version: number) => ['task', id, { ...task(id), version } as Stored<Kind>] as const;

    replica.reset(9, [entry('same', 3), entry('changed', 8), entry('new', 9)]);

    assert.deepEqual(ids(replica.all('task')), ['changed', 'new', 'same']);
    assert.equal(replica.get('task', 'changed')?.version, 8);
    assert.deepEqual(
      told.map(({ revision, changes }) => [revision, changes.map(({ id }) => id)]),
      [[9, ['changed', 'new', 'gone']]],
    );
  });

  test('a reset to an older revision takes nothing back: it was read before this leader stored its last batch', () => {
    const replica = new Replica(systemClock);
    replica.apply({ revision: 5, changes: [put(task('a', { node: 'new' }))] });

    replica.reset(4, [['task', 'a', { ...task('a', { node: 'old' }), version: 4 }]]);

    assert.equal(replica.get('task', 'a')?.node, 'new');
    assert.equal(replica.revision, 5);
  });

  test('a wait for a revision ends when it is there, or with the news that it did not come', async () => {
    const replica = new Replica(systemClock);
    const waits = replica.reached(5, 600_000);

    replica.apply({ revision: 6, changes: [] });

    assert.equal(await waits, true);
    assert.equal(await replica.reached(6, 0), true);
    assert.equal(await replica.reached(7, 0), false);
  });
});

suite('a draft', () => {
  const base = new Replica(systemClock);
  base.apply({
    revision: 2,
    changes: [put(task('a', { node: 'one' })), put(task('b', { node: 'one' })), put(task('c'))],
  });

  test('shows its own changes over the committed records, which stay as they are', () => {
    const draft = new Draft(base);

    draft.put('task', { ...base.get('task', 'a')!, node: 'two' });
    draft.put('task', task('d', { node: 'one' }));
    draft.delete('task', 'b');

    assert.deepEqual(ids(draft.all('task')), ['a', 'c', 'd']);
    assert.deepEqual(ids(draft.tasksOn('one')), ['d']);
    assert.deepEqual(ids(draft.tasksOn('two')), ['a']);
    assert.deepEqual(ids(draft.tasksOf('web')), ['a', 'c', 'd']);
    assert.equal(draft.get('task', 'b'), undefined);
    assert.equal(draft.get('task', 'd')?.version, 0);
    assert.deepEqual(ids(base.tasksOn('one')), ['a', 'b']);
  });

  test('an attempt that throws leaves nothing, one that does not stays', () => {
    const draft = new Draft(base);
    draft.put('task', task('d'));

    assert.throws(() => {
      draft.attempt((inner) => {
        inner.put('task', task('e'));
        inner.delete('task', 'd');
        throw new Error('refused');
      });
    });
    draft.attempt((inner) => inner.put('task', task('f', { node: 'one' })));

    assert.deepEqual(ids(draft.all('task')), ['a', 'b', 'c', 'd', 'f']);
    assert.deepEqual(ids(draft.tasksOn('one')), ['a', 'b', 'f']);
    assert.deepEqual(
      [...draft.changes].map(({ id }) => id),
      ['d', 'f'],
    );
  });

  test('an update of an older version is refused', () => {
    const current = base.get('task', 'a')!;

    refuseOldVersion(current, 2);

    assert.throws(() => refuseOldVersion(current, 1), /update out of sequence/);
    const draft = new Draft(base);
    draft.put('task', current);
    assert.throws(() => refuseOldVersion(draft.get('task', 'a')!, 2), /update out of sequence/);
  });
});

test('keys tell kind and id of records, and nothing of the keys that hold none', () => {
  const records: [Kind, Records[Kind], string][] = [
    ['task', task('one'), 'task/one'],
    ['restart', { service: 'web', place: '3', template: 'x', attempts: [] }, 'restart/web/3'],
  ];

  for (const [kind, record, key] of records) {
    assert.equal(keyOf(kind, idOf(kind, record)), key);
    assert.deepEqual(recordOfKey(key), { kind, id: idOf(kind, record) });
  }
  assert.deepEqual(recordOfKey('cluster'), { kind: 'cluster', id: '' });
  for (const key of ['leader', 'seq', 'other/x', '/x', '']) assert.equal(recordOfKey(key), undefined);
});
