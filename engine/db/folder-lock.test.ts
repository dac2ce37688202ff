import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { FolderLock } from './folder-lock.ts';

function folder(): Disposable & { path: string } {
  const path = mkdtempSync(join(tmpdir(), 'gantry-lock-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

test('a folder that another daemon holds is told as such, and is free afterwards', () => {
  using place = folder();

  {
    using _held = new FolderLock(place.path, 'data root');
    assert.throws(() => new FolderLock(place.path, 'data root'), {
      message: `another daemon uses the data root ${place.path}`,
    });
  }

  new FolderLock(place.path, 'data root')[Symbol.dispose]();
});

test('any other trouble has its own message', () => {
  using place = folder();
  writeFileSync(join(place.path, 'lock'), 'this is no lock of ours'.repeat(100));

  assert.throws(() => new FolderLock(place.path, 'exec root'), {
    message: `the exec root ${place.path} cannot be locked: file is not a database`,
  });
  assert.throws(() => new FolderLock(join(place.path, 'missing'), 'exec root'), /cannot be locked: unable to open/);
});
