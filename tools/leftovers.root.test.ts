import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { cgroupPath, usualCgroupPlace } from '@gantry/engine/host/cgroups/cgroup-driver.ts';
import { detectCgroups, removeCgroup } from '@gantry/engine/host/cgroups/cgroups.ts';

import { findLeftovers } from './leftovers.ts';

/** A process that is named like a program of the tests, with this temporary folder. */
async function startProgram(folder: string): Promise<AsyncDisposable> {
  const child = spawn('sleep', ['1000'], { argv0: 'dockerd', env: { ...process.env, TMPDIR: folder } });
  await once(child, 'spawn');
  return {
    async [Symbol.asyncDispose]() {
      child.kill();
      await once(child, 'exit');
    },
  };
}

function mountAt(path: string): Disposable {
  execFileSync('mount', ['-t', 'tmpfs', 'none', path]);
  return { [Symbol.dispose]: () => execFileSync('umount', [path]) };
}

test('processes and mounts of the run are leftovers, those of another run are not', async () => {
  await using ours = await mkdtempDisposable(join(tmpdir(), 'gantry-ours-'));
  await using theirs = await mkdtempDisposable(join(tmpdir(), 'gantry-theirs-'));
  for (const { path } of [ours, theirs]) await mkdir(join(path, 'mount'));
  const before = findLeftovers(ours.path);

  {
    await using _theirProgram = await startProgram(theirs.path);
    using _theirMount = mountAt(join(theirs.path, 'mount'));
    assert.deepEqual(findLeftovers(ours.path), before);

    await using _ourProgram = await startProgram(ours.path);
    using _ourMount = mountAt(join(ours.path, 'mount'));
    const [mount, program, ...rest] = findLeftovers(ours.path).filter((each) => !before.includes(each));
    assert.equal(mount, `mount ${ours.path}/mount`);
    assert.match(program!, /^process \d+ dockerd 1000/);
    assert.deepEqual(rest, []);
  }

  assert.deepEqual(findLeftovers(ours.path), before);
});

for (const prefix of ['docker', 'gantry'] as const) {
  test(`an empty cgroup of a container below /${prefix} is a leftover`, async () => {
    await using ours = await mkdtempDisposable(join(tmpdir(), 'gantry-ours-'));
    const cgroups = detectCgroups();
    const path = cgroupPath(usualCgroupPlace('cgroupfs', prefix), `left-${process.pid}`);
    const folder = cgroups.controllers.get('pids')!;
    const before = findLeftovers(ours.path, true);

    await mkdir(join(folder, path), { recursive: true });
    try {
      const left = findLeftovers(ours.path, true).filter((each) => !before.includes(each));
      assert.ok(
        findLeftovers(ours.path, false).every((each) => !left.includes(each)),
        'another engine may have made it',
      );
      assert.ok(left.includes(`cgroup ${join(folder, path)}`), left.join(', '));
    } finally {
      removeCgroup(cgroups, path);
    }
  });
}
