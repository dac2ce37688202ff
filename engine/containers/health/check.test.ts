import assert from 'node:assert/strict';
import { test } from 'node:test';

import { goDurationText } from '../../lib/notations/go-duration.ts';
import { checkOf } from './check.ts';

test('a check has dockerd’s defaults', () => {
  assert.deepEqual(checkOf({ Healthcheck: { Test: ['CMD', 'a', 'b c'] } }), {
    command: ['a', 'b c'],
    intervalMs: 30_000,
    timeoutMs: 30_000,
    startPeriodMs: 0,
    startIntervalMs: 5000,
    retries: 3,
  });
});

test('a check has the settings of the request', () => {
  const Healthcheck = {
    Test: ['CMD-SHELL', 'x || y'],
    Interval: 1.5e9,
    Timeout: 1e6,
    StartPeriod: 2e9,
    Retries: 7,
    StartInterval: 3e9,
  };

  assert.deepEqual(checkOf({ Healthcheck }), {
    command: ['/bin/sh', '-c', 'x || y'],
    intervalMs: 1500,
    timeoutMs: 1,
    startPeriodMs: 2000,
    startIntervalMs: 3000,
    retries: 7,
  });
});

for (const Test of [undefined, [], ['NONE'], ['NONE', 'x'], [''], ['FOO', 'x'], ['CMD']]) {
  test(`there is no check: ${JSON.stringify(Test)}`, () => {
    assert.equal(checkOf({ Healthcheck: { ...(Test && { Test }), Interval: 1e9 } }), undefined);
  });
}

for (const [milliseconds, text] of [
  [0, '0s'],
  [1, '1ms'],
  [20.5, '20.5ms'],
  [1500, '1.5s'],
  [30_000, '30s'],
  [60_000, '1m0s'],
  [90_500, '1m30.5s'],
  [3_600_000, '1h0m0s'],
] as const) {
  test(`Go writes ${text}`, () => assert.equal(goDurationText(milliseconds * 1e6), text));
}
