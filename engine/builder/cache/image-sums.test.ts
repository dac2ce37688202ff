import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { SourceFound, SourcesWanted } from '../../copies/transfer/sources.ts';
import { ImageSums } from './image-sums.ts';

const wanted = (word: string): SourcesWanted => ({ words: [word], dialect: 'classic' });
const sources = (count: number): SourceFound[] =>
  Array.from({ length: count }, (_, at) => ({ path: `${at}`, sum: `${at}` }));

test('checksums are computed once for an image, unless there are many', async () => {
  const sums = new ImageSums();
  const computed: string[] = [];
  const find = async (word: string, count: number): Promise<void> => {
    const found = await sums.find('image', wanted(word), async () => {
      computed.push(word);
      return await Promise.resolve(sources(count));
    });
    assert.equal(found.length, count);
  };

  for (const _round of [1, 2])
    for (const [word, count] of [
      ['few', 2],
      ['many', 100_000],
    ] as const)
      await find(word, count);

  assert.deepEqual(computed, ['few', 'many', 'many']);
});

test('a build computes checksums itself when the client of the build that computed them has left', async () => {
  const sums = new ImageSums();
  const first = Promise.withResolvers<SourceFound[]>();
  const leaving = sums.find('image', wanted('a'), async () => await first.promise);
  const waiting = sums.find('image', wanted('a'), async () => await Promise.resolve(sources(3)));

  first.reject(new Error('the copy was canceled'));

  await assert.rejects(leaving, /canceled/);
  assert.equal((await waiting).length, 3);
});
