import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { SimulatedCluster } from '@gantry/testing/cluster/simulated-cluster.ts';

import { newEncryptionKey } from '../../lib/encryption.ts';
import type { FileMessage } from '../wire/task-messages.ts';
import { answerFile, needsFiles } from './deliver.ts';
import { seal } from './seal.ts';

const KEY = newEncryptionKey();
const REFERENCE = { id: 's1', name: 'one', file: { name: 'one', uid: '0', gid: '0', mode: 0o444 } };
const WANTED = { kind: 'secret', id: 's1' } as const;

/** Nodes `a` and `b`, secrets `s1` and `s2`, and a task with `s1` on one of the nodes. */
function cluster(templating?: { name: string; options: Record<string, string> }): SimulatedCluster {
  const made = new SimulatedCluster();
  made.node('a');
  made.node('b');
  made.change((draft) => {
    const dates = { createdAt: made.now.toString(), updatedAt: made.now.toString() };
    for (const [id, name] of [
      ['s1', 'one'],
      ['s2', 'two'],
    ] as const) {
      const sealed = seal(KEY, { kind: 'secret', name }, Buffer.from(`value of ${name}`));
      draft.put('secret', { ...dates, id, name, labels: {}, sealed, ...(templating && { templating }) });
    }
  });
  const container = { image: 'busybox', secrets: [REFERENCE] };
  made.service('web', {
    labels: { tier: 'front' },
    template: { container },
    mode: { kind: 'replicated', replicas: 1 },
  });
  made.turn();
  return made;
}

const onlyTask = ({ replica }: SimulatedCluster) => [...replica.tasksOf('web')][0]!;

async function answer(made: SimulatedCluster, node: string, changes: object = {}): Promise<FileMessage> {
  const wanted = { ...WANTED, task: onlyTask(made).id, ...changes };
  return await answerFile(made.replica, async () => await Promise.resolve(KEY), node, wanted);
}

suite('a node that asks for a secret', () => {
  test('gets the one of its task', async () => {
    const made = cluster();
    const { node } = onlyTask(made);

    const { data, refusal, templating } = await answer(made, node);

    assert.equal(Buffer.from(data ?? '', 'base64').toString(), 'value of one');
    assert.deepEqual([refusal, templating], [undefined, undefined]);
    assert.equal(needsFiles(made.replica, onlyTask(made)), true);
  });

  test('gets the labels of the service with a template', async () => {
    const made = cluster({ name: 'golang', options: {} });

    const { templating } = await answer(made, onlyTask(made).node);

    assert.deepEqual(templating, { name: 'golang', serviceLabels: { tier: 'front' } });
  });

  for (const [why, change] of [
    ['that another node runs', { node: 'other' }],
    ['that is not in the task', { id: 's2' }],
    ['of another kind', { kind: 'config' }],
    ['of an unknown task', { task: 'nosuch' }],
  ] as const) {
    test(`gets none ${why}`, async () => {
      const made = cluster();
      const { node } = onlyTask(made);
      const { node: asking = node, ...changes } = change as { node?: string };

      const { data, refusal } = await answer(made, asking === 'other' ? (node === 'a' ? 'b' : 'a') : asking, changes);

      assert.equal(data, undefined);
      assert.match(refusal ?? '', /not found$/);
    });
  }

  for (const state of ['complete', 'failed', 'shutdown'] as const) {
    test(`gets none for a task that is ${state}`, async () => {
      const made = cluster();
      made.change((draft) => {
        const task = onlyTask(made);
        draft.put('task', { ...task, status: { ...task.status, state } });
      });

      assert.equal((await answer(made, onlyTask(made).node)).data, undefined);
    });
  }

  test('gets the reason where the data cannot be decrypted', async () => {
    const made = cluster();
    const wanted = { ...WANTED, task: onlyTask(made).id };
    const other = async (): Promise<Buffer> => await Promise.resolve(newEncryptionKey());

    const { data, refusal } = await answerFile(made.replica, other, onlyTask(made).node, wanted);

    assert.deepEqual([data, refusal], [undefined, 'the secret one cannot be decrypted']);
  });
});
