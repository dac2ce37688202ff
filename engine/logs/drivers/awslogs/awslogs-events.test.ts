import assert from 'node:assert/strict';
import { test } from 'node:test';

import { START, type Line } from '../../delivery/line.ts';
import { eventsByLine, eventsByPattern, multilinePattern } from './awslogs-events.ts';

type Written = { text: string; source?: 'stdout' | 'stderr'; piece?: [number, boolean] };

function lines(...written: Written[]): Line[] {
  return written.map(({ text, source = 'stdout', piece }, at) => ({
    seq: at + 1,
    missing: 0,
    time: Temporal.Instant.fromEpochMilliseconds(piece === undefined ? 1000 + at : 1000),
    source,
    text: Buffer.from(text),
    string: text,
    partial: piece && { id: 'x', ordinal: piece[0], isLast: piece[1] },
    after: START,
  }));
}

function messages({ events }: ReturnType<typeof eventsByLine>): string[] {
  return events.map(({ message }) => message);
}

test('pieces of a line are one event, which waits for its end', () => {
  const written = lines(
    { text: 'a' },
    { text: 'b1', piece: [1, false] },
    { text: 'err', source: 'stderr' },
    { text: 'b2', piece: [2, false] },
  );

  const waiting = eventsByLine(written, false);
  const ended = eventsByLine(written, true);
  const whole = eventsByLine([...written, ...lines({ text: 'b3', piece: [3, true] })], false);

  assert.deepEqual([messages(waiting), waiting.lines], [['a'], 1]);
  assert.deepEqual([messages(ended), ended.lines], [['a', 'b1b2', 'err'].toSorted(), 4]);
  assert.deepEqual([messages(whole), whole.lines], [['a', 'b1b2b3', 'err'].toSorted(), 5]);
});

test('a line that the end of a run has cut off is an event of its own', () => {
  const { events, lines: taken } = eventsByLine(lines({ text: 'cut', piece: [1, false] }, { text: 'next' }), false);

  assert.deepEqual([events.map(({ message }) => message), taken], [['cut', 'next'], 2]);
});

test('a line that is longer than an event is cut between characters', () => {
  const { events } = eventsByLine(lines({ text: 'é'.repeat(140_000) }), true);

  assert.deepEqual(
    events.map(({ message }) => Buffer.byteLength(message)),
    [262_118, 280_000 - 262_118],
  );
});

test('with a pattern the last event waits for the next one', () => {
  const written = lines({ text: '[1' }, { text: 'x' }, { text: '[2' }, { text: 'y' });
  const isFirst = (text: string): boolean => text.startsWith('[');

  const waiting = eventsByPattern(written, isFirst, false);
  const ended = eventsByPattern(written, isFirst, true);

  assert.deepEqual([waiting.events, waiting.lines], [[{ timestamp: 1000, message: '[1\nx\n' }], 2]);
  assert.deepEqual([messages(ended), ended.lines], [['[1\nx\n', '[2\ny\n'], 4]);
});

test('a format of dates is a pattern', () => {
  const pattern = multilinePattern({ 'awslogs-datetime-format': '[%b %d, %Y %H:%M:%S]%q' });

  assert.match(
    '[Jan 02, 2026 03:04:05]',
    new RegExp(pattern.replace('[(', String.raw`\[(`).replace(/\]$/, String.raw`\]`)),
  );
  assert.equal(multilinePattern({}), '');
});
