import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { mountTable } from '../../host/mounts/mount-table.ts';
import { hideAllViews, hideView, showView } from './views.ts';

const ID = 'a'.repeat(64);

test('a plugin cannot lead a container to other files than its own, neither before nor after they are shown', () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-views-'));
  const config = { dataRoot: place.path };
  const root = join(place.path, 'root');
  for (const folder of ['data', 'etc']) mkdirSync(join(root, folder), { recursive: true });
  writeFileSync(join(root, 'data/file'), "the plugin's");
  writeFileSync(join(root, 'etc/hostname'), 'its own name');
  symlinkSync('/data', join(root, 'absolute'));
  symlinkSync('../../../../etc', join(root, 'upwards'));
  symlinkSync('/proc/self/root', join(root, 'magic'));
  const show = (path: string): string => showView(config, ID, path, { root, path });
  const mounts = (): number => mountTable().filter(({ path }) => path.startsWith(`${place.path}/`)).length;
  try {
    assert.equal(readFileSync(join(show('/absolute'), 'file'), 'utf8'), "the plugin's");
    assert.equal(readFileSync(join(show('/upwards'), 'hostname'), 'utf8'), 'its own name');
    assert.throws(() => show('/nosuch'), /the plugin has no folder \/nosuch/);
    assert.throws(() => show('/magic'), /the plugin has no folder/);

    const view = show('/data');
    renameSync(join(root, 'data'), join(root, 'old'));
    symlinkSync('/etc', join(root, 'data'));
    assert.equal(readFileSync(join(view, 'file'), 'utf8'), "the plugin's");
    assert.equal(readFileSync(join(show('/data'), 'hostname'), 'utf8'), 'its own name', 'a view is replaced');

    assert.equal(mounts(), 3);
    hideView(config, ID, '/data');
    hideView(config, ID, '/data');
    assert.equal(existsSync(view), false);
    hideAllViews(config, ID);
    assert.equal(mounts(), 0);
  } finally {
    hideAllViews(config, ID);
  }
});

test('mounts in a folder are shown too, and stay there when the view goes', () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-views-'));
  const root = join(place.path, 'root');
  mkdirSync(join(root, 'volume'), { recursive: true });
  execFileSync('mount', ['--bind', root, root]);
  execFileSync('mount', ['--make-shared', root]);
  execFileSync('mount', ['-t', 'tmpfs', 'none', join(root, 'volume')]);
  try {
    writeFileSync(join(root, 'volume/file'), 'mounted');
    const config = { dataRoot: place.path };
    const view = showView(config, ID, 'key', { root, path: '' });

    assert.equal(readFileSync(join(view, 'volume/file'), 'utf8'), 'mounted');
    hideView(config, ID, 'key');
    assert.equal(readFileSync(join(root, 'volume/file'), 'utf8'), 'mounted');
  } finally {
    execFileSync('umount', [join(root, 'volume')]);
    execFileSync('umount', [root]);
  }
});
