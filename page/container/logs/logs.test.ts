import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ansiSpans, plainText } from './ansi.ts';
import { levelOf } from './levels.ts';
import { LogFilter } from './log-filter.ts';
import { LogReader, type LogLine } from './log-lines.ts';

const TIME = '2026-11-28T10:00:00.000000001Z';

function frame(stream: number, text: string): Buffer {
  const bytes = Buffer.from(text);
  const head = Buffer.alloc(8);
  head[0] = stream;
  head.writeUInt32BE(bytes.length, 4);
  return Buffer.concat([head, bytes]);
}

test('frames are put together from any pieces, and each stream keeps its own lines', () => {
  const bytes = Buffer.concat([
    frame(1, `${TIME} größe\n${TIME} half`),
    frame(2, `${TIME} trouble\r\n`),
    frame(1, ` and half\n`),
    frame(1, `${TIME} no end`),
  ]);

  for (const size of [1, 3, 7, bytes.length]) {
    const reader = new LogReader({ isFramed: true });
    const lines = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
      reader.read(bytes.subarray(at * size, (at + 1) * size)),
    ).flat();

    assert.deepEqual(
      [...lines, ...reader.end()].map(({ text, isError }) => [text, isError]),
      [
        ['größe', false],
        ['trouble', true],
        ['half and half', false],
        ['no end', false],
      ],
    );
    assert.equal(lines[0]!.time, TIME);
  }
});

test('a line of millions of characters is cut', () => {
  const [line] = new LogReader({ isFramed: false }).read(Buffer.from(`${'x'.repeat(3_000_000)}\n`));

  assert.ok(line!.text.length <= 20_001);
});

test('colours become classes; everything else that steers a terminal is dropped', () => {
  const rows: [string, unknown][] = [
    ['plain', [{ text: 'plain', classes: '' }]],
    [
      '\x1b[1;31mred\x1b[0m rest',
      [
        { text: 'red', classes: 'bold ansi-1' },
        { text: ' rest', classes: '' },
      ],
    ],
    ['\x1b[95;41mx', [{ text: 'x', classes: 'ansi-13 ansi-on-1' }]],
    ['\x1b[38;5;196mx', [{ text: 'x', classes: '', colour: 'rgb(255 0 0)' }]],
    ['\x1b[38;2;1;2;999mx', [{ text: 'x', classes: '', colour: 'rgb(1 2 255)' }]],
    ['\x1b[38;2mx', [{ text: 'x', classes: '', colour: 'rgb(0 0 0)' }]],
    ['\x1b]0;title\x07\x1b]8;;http://evil\x1b\\link\x1b[2J\x1b[H\x07\x08', [{ text: 'link', classes: '' }]],
    ['\x1b]0;no end', []],
    ['\x1b', []],
    ['<script>alert(1)</script>', [{ text: '<script>alert(1)</script>', classes: '' }]],
  ];

  for (const [line, spans] of rows) assert.deepEqual(ansiSpans(line), spans, JSON.stringify(line));
  assert.equal(plainText('\x1b[31ma\x1b[0mb'), 'ab');
});

test('a line has the level that it names in one of the usual forms', () => {
  const rows: [string, string | undefined][] = [
    ['2026-11-28 10:00:00 ERROR no connection', 'error'],
    ['\x1b[31mFATAL\x1b[0m: password', 'error'],
    ['error: no such file', 'error'],
    ['time="…" level=warning msg="old"', 'warning'],
    ['{"level":50,"msg":"no"}', 'error'],
    ['{"time":1,"severity":"DEBUG"}', 'debug'],
    ['2026/11/28 10:00:00 [notice] 7#7: start', 'info'],
    ['INFO 0 errors found', 'info'],
    ['0 errors, 3 warnings', undefined],
    ['GET /error 200', undefined],
    [`${'x'.repeat(200)} ERROR`, undefined],
    ['', undefined],
  ];

  for (const [line, level] of rows) assert.equal(levelOf(line), level, line);
});

test('a filter keeps its hits as lines come and old ones are dropped, and begins anew with another search', () => {
  const line = (text: string): LogLine => ({ time: TIME, text, isError: false });
  const lines = ['a ERROR', 'b', 'c WARN', 'a d'].map(line);
  const filter = new LogFilter();
  const texts = (wanted: object, dropped: number, count: number): string =>
    filter
      .apply({ lines: lines.slice(dropped, count), dropped }, { search: '', level: 'all', ...wanted })
      .map(({ text }) => text)
      .join(', ');

  assert.equal(texts({ search: 'a ' }, 0, 2), 'a ERROR');
  assert.equal(texts({ search: 'a ' }, 0, 4), 'a ERROR, a d');
  assert.equal(texts({ search: 'a ' }, 1, 4), 'a d');
  assert.equal(texts({ level: 'warning' }, 0, 4), 'a ERROR, c WARN');
  assert.equal(texts({ level: 'error' }, 0, 4), 'a ERROR');
  assert.equal(texts({}, 0, 2), 'a ERROR, b');
});
