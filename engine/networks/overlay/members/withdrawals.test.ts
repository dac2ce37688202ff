import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';

import { pino } from 'pino';

import { Withdrawals, type Question } from './withdrawals.ts';

suite('whether other nodes have heard of a withdrawal', () => {
  const timers: (() => void)[] = [];
  const clock = {
    now: () => Temporal.Now.instant(),
    after: (_milliseconds: number, callback: () => void) => {
      timers.push(callback);
      return { [Symbol.dispose]: () => undefined };
    },
  };

  test('the leader is asked, and a new one again; an answered question is not', async () => {
    const withdrawals = new Withdrawals({ clock, log: pino({ enabled: false }) });
    const [first, second]: [Question[], Question[]] = [[], []];
    withdrawals.use((question) => first.push(question));
    const both = [withdrawals.heard(['a']), withdrawals.heard(['a', 'b'])] as const;
    withdrawals.answer(1);
    await both[0];
    withdrawals.use((question) => second.push(question));
    for (const number of [2, 3, 9]) withdrawals.answer(number);
    await both[1];

    const questions = [
      { number: 1, network: 'a' },
      { number: 2, network: 'b' },
      { number: 3, network: 'a' }, // asked after the first
    ];
    assert.deepEqual([first, second], [questions, questions.slice(1)]);
  });

  test('nobody waits for ever, nor where nobody can be asked', async () => {
    const withdrawals = new Withdrawals({ clock, log: pino({ enabled: false }) });
    await withdrawals.heard(['a']);
    const questions: Question[] = [];
    withdrawals.use((question) => questions.push(question));
    const silent = withdrawals.heard(['a']);
    for (const callback of timers) callback();
    await silent;
    await setImmediate(); // the question is given up too
    const left = withdrawals.heard(['a']);
    withdrawals.use(undefined);
    await left;

    assert.deepEqual(
      questions.map(({ number }) => number),
      [1, 2],
    );
  });
});
