import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { pino } from 'pino';

import { Withdrawals, type Question } from './withdrawals.ts';

suite('whether other nodes have heard of a withdrawal', () => {
  let late: (() => void) | undefined;
  const clock = {
    now: () => Temporal.Now.instant(),
    after: (_milliseconds: number, callback: () => void) => {
      late = callback;
      return { [Symbol.dispose]: () => undefined };
    },
  };

  test('the leader is asked, and a new one again; what it has answered is not', async () => {
    const withdrawals = new Withdrawals({ clock, log: pino({ enabled: false }) });
    const [first, second]: [Question[], Question[]] = [[], []];
    withdrawals.use((question) => first.push(question));
    const both = [withdrawals.heard(['a']), withdrawals.heard(['b', 'c'])] as const;
    withdrawals.answer(1);
    await both[0];
    withdrawals.use((question) => second.push(question));
    withdrawals.answer(2);
    withdrawals.answer(9);
    await both[1];

    const questions = [
      { number: 1, networks: ['a'] },
      { number: 2, networks: ['b', 'c'] },
    ];
    assert.deepEqual([first, second], [questions, [questions[1]]]);
  });

  test('nobody waits for ever, nor where nobody can be asked', async () => {
    const withdrawals = new Withdrawals({ clock, log: pino({ enabled: false }) });
    await withdrawals.heard(['a']);
    const questions: Question[] = [];
    withdrawals.use((question) => questions.push(question));
    const silent = withdrawals.heard(['a']);
    late?.();
    await silent;
    const left = withdrawals.heard(['a']);
    withdrawals.use(undefined);
    await left;

    assert.deepEqual(
      questions.map(({ number }) => number),
      [1, 2],
    );
  });
});
