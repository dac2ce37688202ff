import assert from 'node:assert/strict';
import { test } from 'node:test';

import { EngineError } from '../../lib/errors.ts';
import { containerChanges } from './changes.ts';

type Needs = Parameters<typeof containerChanges>[0];

/** An engine whose container is removed while its files are compared, if `isRemoved`. */
function failing(isRemoved: boolean): Needs {
  let exists = true;
  const containers = {
    find(ref: string) {
      if (!exists) throw new EngineError('notFound', `No such container: ${ref}`);
      return { id: ref };
    },
  };
  const copies = {
    async changes() {
      exists = !isRemoved;
      throw Object.assign(new Error('no such folder'), { code: 'ENOENT' });
    },
  };
  const layers = { wholeOverlay: () => ({ base: '/base', lower: [], upper: '/upper' }) };
  return { containers, copies, layers } as unknown as Needs;
}

test('changes of a container that is removed meanwhile: there is no such container', async () => {
  await assert.rejects(containerChanges(failing(true), 'c'), { kind: 'notFound', message: 'No such container: c' });
});

test('any other failure of a comparison stays one', async () => {
  await assert.rejects(containerChanges(failing(false), 'c'), { code: 'ENOENT' });
});
