import assert from 'node:assert/strict';
import { test } from 'node:test';

import { compileSeccomp } from './seccomp.ts';

test('a filter with an unknown action is left to the runtime, also where every object has that name', () => {
  for (const defaultAction of ['SCMP_ACT_NONE', 'constructor', '__proto__'])
    assert.equal(compileSeccomp({ defaultAction, architectures: [], syscalls: [] }), undefined);
  for (const action of ['SCMP_ACT_NONE', 'constructor', '__proto__']) {
    const syscalls = [{ names: ['read'], action }];
    assert.equal(compileSeccomp({ defaultAction: 'SCMP_ACT_ALLOW', architectures: [], syscalls }), undefined);
  }
});
