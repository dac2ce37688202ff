import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { spreadFoldersIn } from './spread-folders.ts';

const run = (command: string, ...words: string[]): string => execFileSync(command, words, { encoding: 'utf8' });

/** A folder of a file system of this kind. */
function mounted(kind: 'ext4' | 'tmpfs'): Disposable & { path: string } {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-spread-'));
  const [disk, path] = [join(folder, 'disk'), join(folder, 'mounted')];
  mkdirSync(path);
  writeFileSync(disk, '');
  truncateSync(disk, 16 * 1024 * 1024);
  if (kind === 'ext4') run('mkfs.ext4', '-q', '-F', disk);
  run('mount', '-t', kind, ...(kind === 'ext4' ? ['-o', 'loop'] : []), disk, path);
  return {
    path,
    [Symbol.dispose]() {
      run('umount', path);
      rmSync(folder, { recursive: true });
    },
  };
}

test('ext4 is told to spread the folders of a folder, once and again; its other flags stay', () => {
  using ext4 = mounted('ext4');
  run('chattr', '+A', ext4.path);

  spreadFoldersIn(ext4.path);
  spreadFoldersIn(ext4.path);

  assert.match(run('lsattr', '-d', ext4.path), /^[-e]*A[-e]*T[-e]* /);
});

test('a file system without such a flag is left as it is', () => {
  using tmpfs = mounted('tmpfs');

  assert.doesNotThrow(() => spreadFoldersIn(tmpfs.path));
});
