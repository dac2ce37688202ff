import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { installForUser, uninstallForUser } from './install-for-user.ts';
import type { Machine } from './systemd-units.ts';

function machine(calls: string[][] = []): Machine {
  return { isRoot: false, hasSystemd: true, systemctl: (...words) => void calls.push(words) };
}

test('the unit of a user starts the daemon and ends no containers', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'gantry-unit-'));
  const calls: string[][] = [];

  installForUser(folder.path, machine(calls));

  const unit = join(folder.path, 'systemd/user/gantry.service');
  assert.match(readFileSync(unit, 'utf8'), /^ExecStart=.*gantry"? daemon$[^]*^KillMode=process$/m);
  assert.deepEqual(calls, [['daemon-reload'], ['enable', 'gantry.service'], ['restart', 'gantry.service']]);
  uninstallForUser(folder.path, machine(calls));
  assert.equal(existsSync(unit), false);
});

test('root is refused, and without systemd the command to run is told', () => {
  assert.throws(() => installForUser('/nowhere', { ...machine(), isRoot: true }), /not root/);
  assert.throws(() => installForUser('/nowhere', { ...machine(), hasSystemd: false }), /gantry daemon$/);
});
