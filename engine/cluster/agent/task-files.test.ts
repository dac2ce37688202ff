import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';

import type { FromNode } from '../wire/schemas.ts';
import { TaskFiles } from './task-files.ts';

const wanted = (task: string) => ({ task, kind: 'secret', id: 's1' }) as const;
const answerTo = (task: string) => ({ say: 'file', ...wanted(task), data: 'eA==' }) as const;
const never = new AbortController().signal;

suite('files of tasks', () => {
  test('are asked for one after the other, and again in a new session', async () => {
    const files = new TaskFiles();
    const asked: FromNode[] = [];
    const first = files.get(wanted('t1'), never);
    const second = files.get(wanted('t2'), never);
    files.begin((message) => asked.push(message));
    files.begin((message) => asked.push(message));
    assert.deepEqual(asked, [
      { say: 'wantFile', ...wanted('t1') },
      { say: 'wantFile', ...wanted('t1') },
    ]);

    files.take(answerTo('t1'));
    assert.deepEqual(await first, answerTo('t1'));
    assert.deepEqual(asked[2], { say: 'wantFile', ...wanted('t2') });
    files.take(answerTo('t2'));
    assert.equal((await second).data, 'eA==');
    files.take(answerTo('t2')); // nobody waits for it
  });

  test('one that is given up does not hold up the next', async () => {
    const files = new TaskFiles();
    const asked: FromNode[] = [];
    files.begin((message) => asked.push(message));
    const over = new AbortController();
    const first = files.get(wanted('t1'), over.signal);
    const second = files.get(wanted('t2'), never);

    over.abort(new Error('over'));
    await assert.rejects(first, /over/);
    await turn();
    files.take(answerTo('t2'));

    assert.equal((await second).data, 'eA==');
    assert.equal(asked.length, 2);
  });

  test('a refusal is the reason', async () => {
    const files = new TaskFiles();
    files.begin(() => undefined);
    const refused = files.get(wanted('t1'), never);

    files.take({ say: 'file', ...wanted('t1'), refusal: 'secret s1 not found' });

    await assert.rejects(refused, {
      kind: 'failed',
      message: 'unable to get secret from secret store: secret s1 not found',
    });
  });

  test('a leader of an earlier version is not asked', async () => {
    const files = new TaskFiles();
    files.begin(undefined);
    const over = new AbortController();
    const waiting = files.get(wanted('t1'), over.signal);

    over.abort(new Error('over'));

    await assert.rejects(waiting, /over/);
  });
});
