import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';

import { mountTmpfs, unmount } from './mount.ts';
import { privateMount } from './private-mount.ts';

let folder: string;
let kept: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'gantry private '));
  kept = join(folder, 'kept');
});
afterEach(() => rmSync(folder, { recursive: true }));

function mountsHere(): number {
  const written = folder.replaceAll(' ', String.raw`\040`);
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(written)).length;
}

test('a folder is mounted once, also when a killed daemon has left its mount', () => {
  const left = privateMount(folder, { kept: [kept] });
  {
    using _again = privateMount(folder, { kept: [kept] });
    assert.equal(mountsHere(), 1);
  }
  assert.equal(mountsHere(), 0);
  assert.throws(() => left[Symbol.dispose](), /EINVAL/);
});

test("somebody's own mount stays when ours goes", () => {
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  mountTmpfs(disk, 1024 * 1024);
  try {
    writeFileSync(join(disk, 'file'), '');
    {
      using _mount = privateMount(disk, { kept: [kept] });
      assert.equal(mountsHere(), 2);
      assert.equal(existsSync(join(disk, 'file')), true);
    }
    assert.equal(mountsHere(), 1);
  } finally {
    unmount(disk);
  }
});

test('it stays as long as something is mounted in the folder that is kept', () => {
  {
    using _mount = privateMount(folder, { kept: [kept] });
    mkdirSync(join(kept, 'used'), { recursive: true });
    mountTmpfs(join(kept, 'used'), 1024 * 1024);
  }
  assert.equal(mountsHere(), 2);
  const again = privateMount(folder, { kept: [kept] });
  unmount(join(kept, 'used'));

  again[Symbol.dispose]();

  assert.equal(mountsHere(), 0);
});
