import assert from 'node:assert/strict';
import { test } from 'node:test';

import { resolveOwnModulesDirectly } from './own-modules.ts';

test('modules that are resolved directly are the same as those that Node finds', async () => {
  const { EngineError: before } = await import('./lib/errors.ts');
  const found = import.meta.resolve('./lib/ids.ts');
  const hooks = resolveOwnModulesDirectly();
  try {
    assert.equal((await import('./lib/errors.ts')).EngineError, before);
    assert.equal(import.meta.resolve('./lib/ids.ts'), found);
    assert.equal((await import('./lib/ids.ts')).newId().length, 64);
    const { Type } = await import('typebox');
    assert.equal(Type.String().type, 'string', 'packages are found by Node');
  } finally {
    hooks.deregister();
  }
});
