import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';

import { growthBy, leastOf } from '@gantry/testing/memory/bytes-in-use.ts';

import { bytesPassed, collectYoung } from './garbage.ts';

test('a collection of the young generation frees new buffers', async () => {
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
