import assert from 'node:assert/strict';
import { test } from 'node:test';

import { EngineError } from '../../lib/errors.ts';
import { parseTime } from './times.ts';

const NOW = Temporal.Instant.from('2026-03-04T12:00:00Z');
const local = (text: string): string =>
  Temporal.PlainDateTime.from(text).toZonedDateTime(Temporal.Now.timeZoneId()).toInstant().toString();

for (const [text, expected] of [
  ['0', '1970-01-01T00:00:00Z'],
  ['1772625600', '2026-03-04T12:00:00Z'],
  ['1772625600.000000001', '2026-03-04T12:00:00.000000001Z'],
  ['1772625600.5', '2026-03-04T12:00:00.5Z'],
  ['-1', '1969-12-31T23:59:59Z'],
  ['2026-03-04T12:00:00.25Z', '2026-03-04T12:00:00.25Z'],
  ['2026-03-04T13:00:00+01:00', '2026-03-04T12:00:00Z'],
  ['2026-03-04', local('2026-03-04')],
  ['2026-03-04T10:30', local('2026-03-04T10:30')],
  ['2026-03-04T10:30:15.5', local('2026-03-04T10:30:15.5')],
  ['10m', '2026-03-04T11:50:00Z'],
  ['1h30m', '2026-03-04T10:30:00Z'],
  ['1.5s', '2026-03-04T11:59:58.5Z'],
  ['200ms', '2026-03-04T11:59:59.8Z'],
] as const) {
  test(`${text} is ${expected}`, () => {
    assert.equal(parseTime('since', text, NOW).toString(), expected);
  });
}

for (const text of ['soon', '1e3', '0x10', '12:00', '2026-13-01', '2026-03-04T25:00:00Z', '1.', '5 m']) {
  test(`${text} is refused in the client's words`, () => {
    assert.throws(
      () => parseTime('since', text, NOW),
      (error) => error instanceof EngineError && error.kind === 'invalid' && error.message.endsWith(`"since": ${text}`),
    );
  });
}

test('a length of time needs a moment to be counted from', () => {
  assert.throws(() => parseTime('until', '10m'), EngineError);
});
