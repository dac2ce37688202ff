import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';

import { growthBy, leastOf } from '@gantry/testing/bytes-in-use.ts';

import { bytesPassed, cleanMappingsOf, collectYoung, giveBackMemory } from './memory.ts';

function mapping(head: string, anonymous: number): string {
  return `${head}\nSize:              4096 kB\nRss:                 64 kB\nAnonymous:        ${anonymous} kB\nVmFlags: rd mr mw me sd`;
}

test('only mappings of the loaded program that nobody has written to are given back', () => {
  const smaps = [
    mapping('00400000-0082e000 r--p 00000000 fe:00 53                  /opt/node', 0),
    mapping('0082e000-03489000 r-xp 0042e000 fe:00 53                  /opt/node', 0),
    mapping('03489000-072dc000 r--p 06ea7000 fe:00 53                  /opt/node', 24),
    mapping('072dc000-07308000 rw-p 06edc000 fe:00 53                  /opt/node', 0),
    mapping('7e00b0000000-7e00b0001000 r-xp 01627000 fe:00 53          /opt/node', 0),
    mapping('7f00a0000000-7f00a0001000 r-xp 00000000 fe:00 54          /lib/libc.so.6', 0),
    mapping('7f00b0000000-7f00b0001000 r-xp 00000000 00:00 0 ', 0),
  ].join('\n');

  assert.deepEqual(cleanMappingsOf(smaps, '/opt/node'), [
    { start: 0x400000n, end: 0x82e000n },
    { start: 0x82e000n, end: 0x3489000n },
  ]);
});

test('a mapping of our own program is found', () => {
  assert.ok(cleanMappingsOf(readFileSync('/proc/self/smaps', 'utf8'), process.execPath).length >= 2);
});

test('a process that gave its memory back goes on', () => {
  giveBackMemory();

  assert.equal(JSON.stringify({ still: ['here'] }), '{"still":["here"]}');
});

test('what was made a moment ago and is of no use any more is collected', async () => {
  const makeAndCollect = (): void => {
    for (let made = 0; made < 100; made += 1) new Uint8Array(64 * 1024).fill(1);
    collectYoung();
    collectYoung(); // the memory of the first one is freed in the background
  };
  const buffers = (): number => process.memoryUsage().arrayBuffers;

  const bytes = await leastOf(20, 1024 * 1024, async () => await growthBy(makeAndCollect, buffers));

  assert.ok(bytes < 1024 * 1024, `${bytes} bytes are left each time`);
});

test('the collector is not taken away from a thread that is about to need it', () => {
  collectYoung();

  assert.equal(runInNewContext('typeof gc'), 'function', 'the flag is that of all threads');
});

test('many short streams do not leave more garbage than one long one', async () => {
  const streams = (): void => {
    for (let stream = 0; stream < 127; stream += 1) {
      new Uint8Array(1024 * 1024).fill(1);
      bytesPassed(1024 * 1024);
    }
  };
  const buffers = (): number => process.memoryUsage().arrayBuffers;

  const bytes = await leastOf(20, 8 * 1024 * 1024, async () => await growthBy(streams, buffers));

  assert.ok(bytes < 8 * 1024 * 1024, `${bytes} bytes are left each time`);
});
