import assert from 'node:assert/strict';
import { test } from 'node:test';

import { pino } from 'pino';

import { GatewayLog } from './log.ts';

/** A log, what it has written (the message and the count of each line), and a clock that the test moves. */
function start() {
  const lines: [string, unknown][] = [];
  const write = (line: string): void => {
    const { msg, failures, repeated } = JSON.parse(line) as Record<string, unknown>;
    lines.push([String(msg), failures ?? repeated]);
  };
  let nowMs = 5000;
  const log = new GatewayLog({ level: 'info', requests: false }, pino({ level: 'info' }, { write }), () => nowMs);
  return { log, lines, pass: (milliseconds: number) => (nowMs += milliseconds) };
}

test('a store that is away has a line at once, one a minute with a count, and one when it is back', () => {
  const { log, lines, pass } = start();

  for (let second = 0; second < 150; second += 1) {
    for (let n = 0; n < 10; n += 1) log.storeAway(new Error('redis is not there'));
    pass(1000);
  }
  log.storeBack();
  log.storeBack();

  assert.deepEqual(lines, [
    ['the store does not answer', undefined],
    ['the store still does not answer', 601],
    ['the store still does not answer', 1201],
    ['the store answers again', 1500],
  ]);
});

test('the same failure is written once a minute, with how often it was left out', () => {
  const { log, lines, pass } = start();

  for (let second = 0; second < 70; second += 1) {
    log.failure('store', new Error('database or disk is full'));
    pass(1000);
  }

  assert.deepEqual(lines, [
    ['the store does not answer', 0],
    ['the store does not answer', 59],
  ]);
});

test('a clock of the machine that is set back or forward does not change the omitted lines', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_800_000_000_000 });
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  const log = new GatewayLog({ level: 'info', requests: false }, pino({ level: 'info' }, { write }));

  for (const nowMs of [1_800_000_000_000, 1_900_000_000_000, 1_700_000_000_000, 1_950_000_000_000]) {
    t.mock.timers.setTime(nowMs);
    log.failure('upstream', new Error('connect ECONNREFUSED'));
    log.storeAway(new Error('redis is not there'));
  }

  assert.equal(lines.length, 2);
});
