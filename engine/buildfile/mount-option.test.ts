import assert from 'node:assert/strict';
import { test } from 'node:test';

import { mountOption } from './mount-option.ts';

test('other names of keys are read; a key that is none is named in the refusal, whatever objects know it', () => {
  const { source, target, isReadOnly } = mountOption('src=/a,dst=/b,rw');

  assert.deepEqual([source, target, isReadOnly], ['/a', '/b', false]);
  for (const key of ['nothing', '__proto__', 'constructor'])
    assert.throws(() => mountOption(key), { kind: 'invalid', message: `unexpected key '${key}' in '${key}=true'` });
});
