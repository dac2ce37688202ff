import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseImage, parseNewImage } from './image-json.ts';

test('an image with more than 20,000 labels is refused on arrival; a stored one is still read', () => {
  const labels = (count: number): object => Object.fromEntries(Array.from({ length: count }, (_, n) => [`l${n}`, 'x']));
  const image = (count: number): object => ({ config: { Labels: labels(count) }, rootfs: { type: 'layers' } });

  assert.equal(Object.keys(parseNewImage(image(20_000)).labels!).length, 20_000);
  assert.throws(() => parseNewImage(image(20_001)), {
    kind: 'invalid',
    message: 'the image has more than 20,000 labels',
  });
  assert.equal(Object.keys(parseImage(image(20_001)).labels!).length, 20_001);
});
