import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';

import { gzipper } from './gzip.ts';

test('a thread has one compressor, and its members form one file', () => {
  const [gzip, again] = [gzipper(1024), gzipper(1024)];

  const members = ['one, ', 'two'].map((text) => Buffer.from(gzip(Buffer.from(text))));

  assert.equal(again, gzip);
  assert.equal(gunzipSync(Buffer.concat(members)).toString(), 'one, two');
});
