import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseImage } from './image-json.ts';
import { RecentSettings } from './parsed-settings.ts';

const MIB = 1024 * 1024;
const { settings } = parseImage({ rootfs: { type: 'layers' } });

test('settings of the images that were used last are kept in parsed form, up to a length of their texts', () => {
  const recent = new RecentSettings();
  const parsed: string[] = [];
  const get = (id: string, length: number): unknown =>
    recent.get(id, length, () => {
      parsed.push(id);
      return settings;
    });

  for (const id of ['a', 'b', 'a', 'c', 'a', 'b']) get(id, 0.9 * MIB); // two of them fit

  assert.deepEqual(parsed, ['a', 'b', 'c', 'b']);
});

test('settings of one image above the limit are kept until another one is used', () => {
  const recent = new RecentSettings();
  let count = 0;
  const get = (id: string, length: number): unknown =>
    recent.get(id, length, () => {
      count += 1;
      return settings;
    });

  for (const id of ['large', 'large', 'small', 'large']) get(id, id === 'large' ? 10 * MIB : 1);

  assert.equal(count, 3);
});
