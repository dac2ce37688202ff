import assert from 'node:assert/strict';
import { test } from 'node:test';

import { NodeLoad, takenBy } from './node-load.ts';
import { spreadOver } from './preferences.ts';

const NOW = Temporal.Instant.from('2026-01-01T00:00:00Z');
const none = takenBy(undefined);
const group = { service: 's', taken: none, maxReplicas: 0, now: NOW };

const rows: [what: string, keys: string[], racks: string[], tasks: number, maxReplicas: number, expected: object][] = [
  ['no preference spreads over nodes', [], ['a', 'a', 'b'], 6, 0, { '0:a': 2, '1:a': 2, '2:b': 2 }],
  ['a label spreads over its values', ['node.labels.rack'], ['a', 'a', 'b'], 8, 0, { '0:a': 2, '1:a': 2, '2:b': 4 }],
  ['a missing label is a value', ['node.labels.rack'], ['', '', 'b'], 4, 0, { '0:': 1, '1:': 1, '2:b': 2 }],
  ['other keys are ignored', ['node.id'], ['a', 'a', 'b'], 3, 0, { '0:a': 1, '1:a': 1, '2:b': 1 }],
  [
    'full nodes leave their tasks to others',
    ['node.labels.rack'],
    ['a', 'a', 'b'],
    8,
    1,
    { '0:a': 1, '1:a': 1, '2:b': 1 },
  ],
];
for (const [what, keys, racks, tasks, maxReplicas, expected] of rows) {
  test(what, () => {
    const loads = racks.map((rack, at) => nodeOf(`${at}:${rack}`, rack));
    const choice = spreadOver(keys, { ...group, maxReplicas }, loads, loads);

    for (let left = tasks; left > 0; left -= 1) {
      choice.best?.add('s', none);
      choice.settle();
    }

    assert.deepEqual(Object.fromEntries(loads.map((load) => [load.node.id, load.tasksOf('s')])), expected);
  });
}

test('tasks on nodes that the filters refuse count for the value of their label', () => {
  const [full, free, other] = [nodeOf('1', 'a'), nodeOf('2', 'a'), nodeOf('3', 'b')];
  for (let tasks = 0; tasks < 3; tasks += 1) full.add('s', none);

  const choice = spreadOver(['node.labels.rack'], group, [free, other], [full, free, other]);

  assert.equal(choice.best, other);
});

function nodeOf(id: string, rack: string): NodeLoad {
  return new NodeLoad({
    id,
    createdAt: NOW.toString(),
    updatedAt: NOW.toString(),
    spec: { name: '', labels: rack === '' ? {} : { rack }, role: 'worker', availability: 'active' },
    role: 'worker',
    status: { state: 'ready', message: '', address: '127.0.0.1' },
  });
}
