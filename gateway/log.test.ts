import assert from 'node:assert/strict';
import { test } from 'node:test';

import { pino } from 'pino';

import { GatewayLog } from './log.ts';

/** A log, and what it has written: the message and the count of each line. */
function start(): { log: GatewayLog; lines: [string, unknown][] } {
  const lines: [string, unknown][] = [];
  const write = (line: string): void => {
    const { msg, failures, repeated } = JSON.parse(line) as Record<string, unknown>;
    lines.push([String(msg), failures ?? repeated]);
  };
  return { log: new GatewayLog({ level: 'info', requests: false }, pino({ level: 'info' }, { write })), lines };
}

test('a store that is away has a line at once, one a minute with a count, and one when it is back', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_800_000_000_000 });
  const { log, lines } = start();

  for (let second = 0; second < 150; second += 1) {
    for (let n = 0; n < 10; n += 1) log.storeAway(new Error('redis is not there'));
    t.mock.timers.tick(1000);
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

test('the same failure is written once a minute, with how often it was left out', (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: 1_800_000_000_000 });
  const { log, lines } = start();

  for (let second = 0; second < 70; second += 1) {
    log.failure('store', new Error('database or disk is full'));
    t.mock.timers.tick(1000);
  }

  assert.deepEqual(lines, [
    ['the store does not answer', 0],
    ['the store does not answer', 59],
  ]);
});
