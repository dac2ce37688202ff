import assert from 'node:assert/strict';
import { test } from 'node:test';

import { defaultRules } from '../rules.ts';
import { Batch } from './batch.ts';
import { addEnd, type CallerHere, KnownCallers } from './callers.ts';
import type { Operation } from './operation.ts';
import { ENDS_SENT_WITHIN_MS, WaitingEnds } from './waiting-ends.ts';

const renewal: Operation = { kind: 'renewal', count: 0, amount: 1 };

function sharesOf(batch: Batch): [string, string[]][] {
  return batch.shares.map(({ caller, operations }) => [
    caller.redisKey,
    operations.map(({ kind, count }) => `${count} ${kind}`),
  ]);
}

test('ends wait for two rounds, go along with a call, or alone when there is none', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const alone: string[] = [];
  const ends = new WaitingEnds(256, (caller) => alone.push(caller.redisKey));
  const callers = new KnownCallers('');
  for (const key of ['along', 'alone']) {
    addEnd(callers.find(key), false, 0);
    ends.add(callers.find(key));
  }
  const first = new Batch(defaultRules);
  first.add(callers.find('other'), renewal);
  const second = new Batch(defaultRules);
  second.add(callers.find('other'), renewal);

  t.mock.timers.tick(ENDS_SENT_WITHIN_MS / 3);
  ends.goAlong(first);
  t.mock.timers.tick(ENDS_SENT_WITHIN_MS / 3);
  ends.goAlong(second);
  const before = [...alone];
  t.mock.timers.tick(ENDS_SENT_WITHIN_MS / 3);

  const other = ['{other}', ['0 renewal']];
  assert.deepEqual(sharesOf(first), [other]);
  assert.deepEqual(sharesOf(second), [other, ['{alone}', ['1 end']]]); // one operation, so one goes along
  assert.deepEqual([before, alone], [[], ['{along}']]);
});

test("a caller's ends go with its operations that wait in a later call, and it is not in two calls", (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const ends = new WaitingEnds(256, () => undefined);
  const callers = new KnownCallers('');
  const caller = callers.find('a');
  addEnd(caller, false, 0);
  ends.add(caller);
  for (const _ of [1, 2]) t.mock.timers.tick(ENDS_SENT_WITHIN_MS / 3);
  const sent = new Batch(defaultRules);
  sent.add(callers.find('other'), renewal);
  const waiting = new Batch(defaultRules);
  waiting.add(caller, renewal);

  addEnd(caller, true, 0);
  ends.goAlong(sent);

  assert.deepEqual(sharesOf(sent), [['{other}', ['0 renewal']]]);
  assert.deepEqual(sharesOf(waiting), [['{a}', ['0 renewal', '1 end', '1 graphql-end']]]);
});

test('a caller is known as long as anything is under way for it, and no longer', () => {
  const callers = new KnownCallers('');
  const batch = new Batch(defaultRules);
  const called = callers.find('called');
  batch.add(called, renewal);
  batch.begin();
  const waiting = callers.find('waiting');
  new Batch(defaultRules).add(waiting, renewal);
  const ended = callers.find('ended');
  addEnd(ended, false, 0);
  const busy = callers.find('busy');
  busy.underWay = 1;
  const idle = callers.find('idle');
  const many = (): void => void Array.from({ length: 10_000 }, (_, n) => callers.find(`another ${n}`));

  many();
  const now: CallerHere[] = ['called', 'waiting', 'ended', 'busy', 'idle'].map((key) => callers.find(key));
  batch.end();
  many();

  assert.deepEqual(
    [called, waiting, ended, busy, idle].map((caller, n) => caller === now[n]),
    [true, true, true, true, false],
  );
  assert.notEqual(callers.find('called'), called);
});
