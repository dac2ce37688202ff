import assert from 'node:assert/strict';
import { test } from 'node:test';

import { visible } from './escape.ts';
import { ago, memoryText, sizeText } from './human.ts';
import { portsText } from './ports.ts';
import { tableText } from './table.ts';

test('columns are as wide as their widest cell, and no line ends with blanks', () => {
  assert.equal(
    tableText(
      ['ID', 'NAME', 'X'],
      [
        ['1', 'long name', ''],
        ['22', 'b', 'x'],
      ],
    ),
    'ID        NAME        X\n1         long name\n22        b           x',
  );
  assert.equal(tableText(['ID', 'NAME'], []), 'ID        NAME');
});

test('wide characters take two places', () => {
  assert.equal(
    tableText(
      ['A', 'B'],
      [
        ['容器', 'x'],
        ['abcd', 'y'],
      ],
    ),
    'A         B\n容器      x\nabcd      y',
  );
});

test('a cell cannot steer the terminal, nor begin a line', () => {
  assert.equal(tableText(['A'], [['\u001b[2Jx\ny\u009b\u202e']]), 'A\n\\x1b[2Jx\\ny\\x9b\\u202e');
  assert.equal(visible('plain — 容器'), 'plain — 容器');
});

for (const [seconds, text] of [
  [0, 'Less than a second ago'],
  [1, '1 second ago'],
  [59, '59 seconds ago'],
  [61, 'About a minute ago'],
  [3599, '59 minutes ago'],
  [3700, 'About an hour ago'],
  [47 * 3600, '47 hours ago'],
  [3 * 86_400, '3 days ago'],
  [20 * 86_400, '2 weeks ago'],
  [90 * 86_400, '3 months ago'],
  [3 * 365 * 86_400, '3 years ago'],
] as const) {
  test(`${seconds} seconds are '${text}'`, () => assert.equal(ago(1e9, (1e9 + seconds) * 1000), text));
}

test('sizes are in powers of 1000, memory in powers of 1024', () => {
  assert.deepEqual(
    [0, 999, 1000, 1_980_000, 2.5e9].map((bytes) => sizeText(bytes)),
    ['0B', '999B', '1kB', '1.98MB', '2.5GB'],
  );
  assert.deepEqual([1023, 1536, 2 ** 30 * 23.54].map(memoryText), ['1023B', '1.5KiB', '23.54GiB']);
});

for (const [ports, text] of [
  [[], ''],
  [[[80]], '80/tcp'],
  [[[80, 8080]], '0.0.0.0:8080->80/tcp'],
  [
    [
      [81, 8081],
      [80, 8080],
      [82, 8082],
    ],
    '0.0.0.0:8080->80/tcp, 0.0.0.0:8081->81/tcp, 0.0.0.0:8082->82/tcp',
  ],
  [[[80, 8080], [81, 9000], [82]], '82/tcp, 0.0.0.0:8080->80/tcp, 0.0.0.0:9000->81/tcp'],
] as const) {
  test(`ports as docker lists them: ${text || 'none'}`, () => {
    const wire = ports.map(([PrivatePort, PublicPort]) => ({
      PrivatePort,
      Type: 'tcp',
      ...(PublicPort !== undefined && { PublicPort, IP: '0.0.0.0' }),
    }));

    assert.equal(portsText(wire), text);
  });
}
