import assert from 'node:assert/strict';
import { test } from 'node:test';

import { codeOf, giveBackMemory } from './memory.ts';

test('only mappings of the file that are code are given back, never what was written to', () => {
  const maps = [
    '00400000-0082e000 r--p 00000000 fe:00 53 /opt/node',
    '0082e000-03489000 r-xp 0042e000 fe:00 53 /opt/node',
    '072dc000-07308000 rw-p 06edc000 fe:00 53 /opt/node',
    '7f00a0000000-7f00a0001000 r-xp 00000000 fe:00 54 /lib/libc.so.6',
    '7f00b0000000-7f00b0001000 rwxp 00000000 00:00 0 ',
  ].join('\n');

  assert.deepEqual(codeOf(maps, '/opt/node'), [{ start: 0x82e000n, end: 0x3489000n }]);
});

test('a process that gave its memory back goes on', () => {
  giveBackMemory();

  assert.equal(JSON.stringify({ still: ['here'] }), '{"still":["here"]}');
});
