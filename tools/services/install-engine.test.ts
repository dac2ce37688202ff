import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { installEngine, uninstallEngine } from './install-engine.ts';

const gantry = join(dirname(dirname(import.meta.dirname)), 'gantry');
const units = ['gantry.socket', 'gantry.service'];
const below = (root: string): string[] => units.map((unit) => join(root, 'etc/systemd/system', unit));
const machine = (asked: string[][] = []) => ({
  isRoot: true,
  hasSystemd: true,
  systemctl: (...args: string[]) => void asked.push(args),
});

test('the engine becomes a service with a socket below another root, and is none any more', () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-install-'));
  const asked: string[][] = [];

  const said = installEngine(place.path, machine(asked));
  installEngine(place.path, machine(asked));

  const [socket = '', service = ''] = below(place.path).map((file) => readFileSync(file, 'utf8'));
  assert.match(said, /then: systemctl enable --now gantry\.socket gantry\.service$/);
  assert.match(socket, /^ListenStream=\/run\/gantry\/gantry\.sock$/m);
  assert.equal(/^ExecStart=(.*) daemon$/m.exec(service)?.[1], gantry);
  assert.ok(!service.includes('/opt/gantry') || gantry.startsWith('/opt/gantry'));
  // Without systemd on the machine the program is not there either.
  const verified = spawnSync('systemd-analyze', ['verify', '--man=no', ...below(place.path)], { encoding: 'utf8' });
  if (verified.error === undefined)
    assert.deepEqual([verified.status, verified.stderr.match(/gantry\.\w+:.*/g)], [0, null]);
  assert.match(uninstallEngine(place.path, machine(asked)), /removed/);
  assert.deepEqual(
    below(place.path).map((file) => existsSync(file)),
    [false, false],
  );
  assert.match(uninstallEngine(place.path, machine(asked)), /there is no/);
  assert.deepEqual(asked, []);
});

test('foreign units stay; without systemd, or root, it explains the next step and writes nothing', () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-install-'));
  mkdirSync(join(place.path, 'etc/systemd/system'), { recursive: true });
  const [, service = ''] = below(place.path);
  writeFileSync(service, '[Service]\n');

  assert.throws(() => installEngine(place.path, machine()), /not written by Gantry/);
  assert.throws(() => uninstallEngine(place.path, machine()), /not written by Gantry/);
  assert.equal(readFileSync(service, 'utf8'), '[Service]\n');
  const without = { ...machine(), hasSystemd: false };
  assert.throws(() => installEngine(undefined, without), /supervisor run this as root.*\n.*gantry daemon$/);
  assert.throws(() => installEngine(undefined, { ...machine(), isRoot: false }), /needs root/);
  assert.throws(() => uninstallEngine(undefined, { ...machine(), isRoot: false }), /needs root/);
});

test('the command installs the engine where nothing else is named', () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-install-'));
  const run = (...args: string[]) => spawnSync(gantry, args, { encoding: 'utf8' });

  const written = run('install', '--root', place.path);
  const isThere = below(place.path).every((file) => existsSync(file));
  const removed = run('uninstall', 'engine', '--root', place.path);

  assert.deepEqual([written.status, isThere, removed.status], [0, true, 0], written.stderr + removed.stderr);
});
