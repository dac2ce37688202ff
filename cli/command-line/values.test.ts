import assert from 'node:assert/strict';
import { test } from 'node:test';

import { durationNs, filtersOf, READ, timeOf } from './values.ts';

for (const [text, bytes] of [
  ['0', 0],
  ['-1', -1],
  ['4096', 4096],
  ['4096b', 4096],
  ['1k', 1024],
  ['1.5K', 1536],
  ['64m', 2 ** 26],
  ['64MB', 2 ** 26],
  ['2GiB', 2 ** 31],
  ['1 g', 2 ** 30],
  ['1t', 2 ** 40],
  ['', undefined],
  ['m', undefined],
  ['1x', undefined],
  ['-2', undefined],
] as const) {
  test(`the size '${text}' is ${bytes}`, () => assert.equal(READ.bytes(text), bytes));
}

for (const [text, ns] of [
  ['0', 0],
  ['10s', 10e9],
  ['1h30m', 5400e9],
  ['1.5ms', 1.5e6],
  ['100µs', 1e5],
  ['10', undefined],
  ['s', undefined],
  ['1d', undefined],
] as const) {
  test(`the duration '${text}' is ${ns} ns`, () => assert.equal(durationNs(text), ns));
}

const NOW = Date.parse('2026-01-31T12:00:00Z');
for (const [text, seconds] of [
  [undefined, undefined],
  ['1700000000', '1700000000'],
  ['1700000000.123456789', '1700000000.123456789'],
  ['10m', String(NOW / 1000 - 600) + '.000'],
  ['2026-01-31T12:00:00Z', `${NOW / 1000}.0`],
  ['2026-01-31T12:00:00.123456789Z', `${NOW / 1000}.123456789`],
  ['2026-01-31T13:00:00+01:00', `${NOW / 1000}.0`],
] as const) {
  test(`the time '${text}' is ${seconds}`, () => assert.equal(timeOf(text, NOW), seconds));
}

test('a time without a zone is the caller’s', () => {
  assert.equal(timeOf('2026-01-31T12:00:00'), `${new Date(2026, 0, 31, 12).getTime() / 1000}.0`);
  assert.equal(timeOf('2026-01-31'), `${new Date(2026, 0, 31).getTime() / 1000}.0`);
});

for (const text of ['soon', '', '31.1.2026', '-10m', '2026-13-01']) {
  test(`the time '${text}' is refused`, () => assert.throws(() => timeOf(text), { code: 125 }));
}

test('filters are collected by their keys', () => {
  assert.equal(filtersOf([]), undefined);
  assert.equal(
    filtersOf(['status=exited', 'label=a=b', 'status=created']),
    '{"status":["exited","created"],"label":["a=b"]}',
  );
  for (const wrong of ['status', '=x', '']) assert.throws(() => filtersOf([wrong]), { code: 125 });
});
