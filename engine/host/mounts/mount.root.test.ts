import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { filesystemOf } from '../files/statfs.ts';
import { mountBind, mountOverlay, mountTmpfs, setPropagation, unmount, unmountInBackground } from './mount.ts';

/** A tmpfs with the named folders in it; unmounted and removed at the end, with everything that is mounted below. */
function place(...folders: string[]): Disposable & { at(name: string): string } {
  const root = mkdtempSync(join(tmpdir(), 'gantry-mount-'));
  mountTmpfs(root, 1 << 20);
  for (const folder of folders) mkdirSync(join(root, folder));
  return {
    at: (name) => join(root, name),
    [Symbol.dispose]() {
      unmount(root, { lazy: true });
      rmSync(root, { recursive: true });
    },
  };
}

function optionsOf(target: string): string | undefined {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .find((line) => line.split(' ')[4] === target);
}

test('an overlay shows its layers, also those with colons and commas in their names', () => {
  using files = place('a:1,x', 'b', 'up', 'work', 'merged');
  writeFileSync(files.at('a:1,x/top'), 'top');
  writeFileSync(files.at('b/bottom'), 'bottom');

  mountOverlay({
    lower: [files.at('a:1,x'), files.at('b')],
    upper: files.at('up'),
    work: files.at('work'),
    target: files.at('merged'),
  });
  writeFileSync(files.at('merged/new'), 'new');

  assert.equal(readFileSync(files.at('merged/top'), 'utf8'), 'top');
  assert.equal(readFileSync(files.at('merged/bottom'), 'utf8'), 'bottom');
  assert.equal(readFileSync(files.at('up/new'), 'utf8'), 'new');
  assert.equal(filesystemOf(files.at('merged')).kind, 'overlay');
  unmount(files.at('merged'));
});

test('an overlay without an upper layer cannot be written', () => {
  using files = place('a', 'b', 'merged');

  mountOverlay({ lower: [files.at('a'), files.at('b')], target: files.at('merged') });

  assert.throws(() => writeFileSync(files.at('merged/x'), ''), { code: 'EROFS' });
  unmount(files.at('merged'));
});

test('options beyond a page are refused instead of cut off', () => {
  using files = place('a', 'merged');
  const lower = Array.from({ length: 200 }, () => files.at('a'));

  assert.throws(() => mountOverlay({ lower, target: files.at('merged') }), RangeError);
});

test('a read-only bind shows the files and refuses writes', () => {
  using files = place('from', 'to');
  writeFileSync(files.at('from/file'), 'content');

  mountBind(files.at('from'), files.at('to'), { readOnly: true });

  assert.equal(readFileSync(files.at('to/file'), 'utf8'), 'content');
  assert.throws(() => writeFileSync(files.at('to/file'), ''), { code: 'EROFS' });
  unmount(files.at('to'));
});

test('propagation is shared or private as set', () => {
  using files = place('a');
  mountBind(files.at('a'), files.at('a'));

  setPropagation(files.at('a'), 'shared');
  const shared = optionsOf(files.at('a'));
  setPropagation(files.at('a'), 'private');

  assert.match(shared ?? '', / shared:\d+ /);
  assert.doesNotMatch(optionsOf(files.at('a')) ?? '', /shared:/);
  unmount(files.at('a'));
});

test('a tmpfs takes its size and no more', () => {
  using files = place('small');
  mountTmpfs(files.at('small'), 64 * 1024, 0o700);

  assert.equal(filesystemOf(files.at('small')).totalBytes, 64 * 1024);
  assert.throws(() => writeFileSync(files.at('small/big'), Buffer.alloc(128 * 1024)), { code: 'ENOSPC' });
  unmount(files.at('small'));
});

test('unmounting in the background ends with the mount gone, or with the kernel’s reason', async () => {
  using files = place('a');
  mountTmpfs(files.at('a'), 4096);

  await unmountInBackground(files.at('a'));

  assert.equal(optionsOf(files.at('a')), undefined);
  await assert.rejects(unmountInBackground(files.at('a')), { name: 'SystemError', code: 'EINVAL', syscall: 'umount2' });
});

test('an error names the call, its arguments and the code', () => {
  assert.throws(() => mountBind('/nonexistent', '/nowhere'), {
    name: 'SystemError',
    code: 'ENOENT',
    message: 'mount("/nonexistent", "/nowhere", "bind"): ENOENT',
  });
});
