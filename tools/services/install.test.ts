import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';

import { readConfig } from '@gantry/gateway/config/read.ts';

import { install, uninstall } from './install.ts';
import { quoted } from './systemd-units.ts';

const root = mkdtempSync(join(tmpdir(), 'gantry-install-'));
after(() => rmSync(root, { recursive: true }));
const unit = join(root, 'etc/systemd/system/gantry-gateway.service');
const config = join(root, 'etc/gantry/gateway.yaml');

const asked: string[][] = [];
const machine = { isRoot: true, hasSystemd: true, systemctl: (...args: string[]) => void asked.push(args) };

test('the gateway becomes a service below another root, and is none any more', () => {
  const said = install(root, machine);
  const text = readFileSync(unit, 'utf8');
  const settings = readConfig(config);
  writeFileSync(config, 'upstream: http://127.0.0.1:4000\n');
  install(root, machine);
  const kept = readFileSync(config, 'utf8');
  const gone = uninstall(root, machine);

  assert.match(said, /written: .*gantry-gateway\.service, .*gateway\.yaml\nthen: systemctl enable --now/);
  const command = /^ExecStart=(.*)$/m.exec(text)?.[1]?.split(' ') ?? [];
  assert.deepEqual(command.slice(-2), ['--config', '/etc/gantry/gateway.yaml']);
  assert.ok(command.slice(0, 1).every((file) => existsSync(file)) && existsSync(command[2] ?? ''), text);
  assert.deepEqual([settings.store.kind, settings.admin.socket], ['sqlite', '/run/gantry-gateway/admin.sock']);
  assert.equal(kept, 'upstream: http://127.0.0.1:4000\n');
  assert.match(gone, /removed/);
  assert.deepEqual([existsSync(unit), existsSync(config), asked], [false, true, []]);
  assert.match(uninstall(root, machine), /there is no/);
});

test('a foreign unit stays as it is', () => {
  mkdirSync(dirname(unit), { recursive: true });
  writeFileSync(unit, '[Service]\n');

  assert.throws(() => install(root, machine), /not written by Gantry/);
  assert.throws(() => uninstall(root, machine), /not written by Gantry/);
  assert.equal(readFileSync(unit, 'utf8'), '[Service]\n');
});

test('without systemd, or without root, it explains the next step and writes nothing', () => {
  assert.throws(
    () => install(undefined, { ...machine, hasSystemd: false }),
    /supervisor run this.*\n.*gateway\/main\.ts --config/,
  );
  assert.throws(() => install(undefined, { ...machine, isRoot: false }), /needs root/);
  assert.throws(() => uninstall(undefined, { ...machine, isRoot: false }), /needs root/);
  assert.deepEqual(asked, []);
});

test('the command takes a scratch root, and knows its targets', () => {
  const gantry = join(dirname(dirname(import.meta.dirname)), 'gantry');
  const other = join(root, 'other');
  const run = (...args: string[]) => spawnSync(gantry, args, { encoding: 'utf8' });

  const written = run('install', 'gateway', '--root', other);
  const unknown = run('install', 'teapot');
  const removed = run('uninstall', 'gateway', '--root', other);

  assert.deepEqual([written.status, removed.status], [0, 0], written.stderr + removed.stderr);
  assert.ok(existsSync(join(other, 'etc/gantry/gateway.yaml')));
  assert.notEqual(unknown.status, 0);
  assert.match(unknown.stderr, /teapot/);
});

test('words of the command line mean themselves', () => {
  assert.deepEqual(['/opt/a', '/my files/100%', '/a"b$c'].map(quoted), [
    '/opt/a',
    '"/my files/100%%"',
    String.raw`"/a\"b$$c"`,
  ]);
});
