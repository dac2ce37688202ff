import assert from 'node:assert/strict';
import { arch } from 'node:os';
import { test } from 'node:test';

import { defaultSeccomp } from './seccomp.ts';

test('the default filter is for the programs of this machine, and without x32', () => {
  const { architectures = [] } = defaultSeccomp([]);

  assert.ok(architectures.length > 0);
  assert.equal(architectures.includes('SCMP_ARCH_X32'), false);
  if (arch() === 'x64') assert.deepEqual(architectures, ['SCMP_ARCH_X86_64', 'SCMP_ARCH_X86']);
});
