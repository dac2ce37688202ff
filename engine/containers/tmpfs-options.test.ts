import assert from 'node:assert/strict';
import { test } from 'node:test';

import { tmpfsOptions, tmpfsText } from './tmpfs-options.ts';

for (const [text, options] of [
  ['', ['noexec', 'nosuid', 'nodev']],
  ['exec', ['exec', 'nosuid', 'nodev']],
  ['suid,dev,size=1m', ['noexec', 'suid', 'dev', 'size=1m']],
  ['ro,rw,mode=700,mode=755', ['noexec', 'nosuid', 'nodev', 'rw', 'mode=755']],
  ['defaults', ['noexec', 'nosuid', 'nodev']],
] as const) {
  test(`the options of a tmpfs with "${text}" are ${options.join(',')}`, () => {
    assert.deepEqual(tmpfsOptions(text), options);
  });
}

for (const [text, message] of [
  ['odd=1', 'invalid tmpfs option ["odd" "1"]'],
  ['size', 'invalid tmpfs option ["size"]'],
  ['exec=1', 'invalid tmpfs option ["exec" "1"]'],
] as const) {
  test(`the option "${text}" of a tmpfs is refused`, () => {
    assert.throws(() => tmpfsOptions(text), { kind: 'invalid', message });
  });
}

test('the options of Mounts are written as those of Tmpfs', () => {
  assert.equal(tmpfsText({ ReadOnly: true, TmpfsOptions: { SizeBytes: 4096, Mode: 0o750 } }), 'ro,mode=750,size=4096');
  assert.equal(tmpfsText({}), '');
});
