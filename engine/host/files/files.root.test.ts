import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { lstatSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { ownCgroup } from '../cgroups/cgroup-moves.ts';
import { cgroupsIn, detectCgroups, processesIn, readUsage, removeCgroup } from '../cgroups/cgroups.ts';
import { effectiveCapabilities, hardLimits } from '../confinement/privileges.ts';
import { deviceMajor, deviceMinor, deviceNumber, makeNode } from './device-nodes.ts';

function folder(): Disposable & { at(name: string): string } {
  const root = mkdtempSync(join(tmpdir(), 'gantry-files-'));
  return { at: (name) => join(root, name), [Symbol.dispose]: () => rmSync(root, { recursive: true }) };
}

test('nodes of every kind are made', () => {
  using files = folder();
  makeNode(files.at('null'), { kind: 'char', mode: 0o600, major: 1, minor: 3 });
  makeNode(files.at('disk'), { kind: 'block', mode: 0o640, major: 259, minor: 70_000 });
  makeNode(files.at('pipe'), { kind: 'fifo', mode: 0o600 });

  const disk = lstatSync(files.at('disk'), { bigint: true }).rdev;

  assert.ok(statSync(files.at('null')).isCharacterDevice());
  assert.ok(statSync(files.at('pipe')).isFIFO());
  assert.deepEqual([deviceMajor(disk), deviceMinor(disk)], [259, 70_000]);
  assert.throws(() => makeNode(files.at('pipe'), { kind: 'fifo', mode: 0o600 }), { code: 'EEXIST', syscall: 'mknod' });
});

test('device numbers survive both ways', () => {
  for (const [major, minor] of [
    [0, 0],
    [1, 3],
    [4095, 255],
    [4096, 256],
    [0xffff_ffff, 0xffff_ffff],
  ] as const) {
    const device = deviceNumber(major, minor);

    assert.deepEqual([deviceMajor(device), deviceMinor(device)], [major, minor]);
  }
});

test('the capabilities are those that the kernel counts for this process', () => {
  const held = effectiveCapabilities();

  assert.ok(held.has('CAP_SYS_ADMIN'));
  assert.ok([...held].every((name) => name.startsWith('CAP_')));
});

test('the limits are those of this process', () => {
  const shell = Number(execFileSync('sh', ['-c', 'ulimit -Hn'], { encoding: 'utf8' }));

  const limits = hardLimits();

  assert.equal(limits.get('RLIMIT_NOFILE')?.hard, shell);
  assert.equal(limits.size, 16);
});

const HYBRID = `30 1 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
34 30 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw`;

test('a hybrid mount is version 1 with an additional version 2', () => {
  const { version, hybrid, controllers, mounts } = cgroupsIn(HYBRID);

  assert.deepEqual([version, hybrid], [1, true]);
  assert.equal(controllers.get('cpu'), '/sys/fs/cgroup/cpu,cpuacct');
  assert.equal(controllers.has('pids'), false);
  assert.equal(mounts.length, 4);
});

test('a single version 2 mount is version 2', () => {
  const { version, hybrid } = cgroupsIn('30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw');

  assert.deepEqual([version, hybrid], [2, false]);
});

test('a cgroup tells its limits and processes, and is removed with those below it', () => {
  const cgroups = detectCgroups();
  const path = `/gantry-test-${process.pid}`;
  for (const mount of cgroups.mounts) mkdirSync(join(mount, path, 'below'), { recursive: true });
  const memory = cgroups.controllers.get('memory')!;
  const file = cgroups.version === 1 ? 'memory.limit_in_bytes' : 'memory.max';
  writeFileSync(join(memory, path, file), String(64 << 20));

  const usage = readUsage(cgroups, path);
  const processes = processesIn(cgroups, path);
  removeCgroup(cgroups, path);
  removeCgroup(cgroups, path); // a cgroup that does not exist is not an error

  assert.equal(usage.memoryLimitBytes, 64 << 20);
  assert.equal(usage.pids, 0);
  assert.equal(usage.pidsLimit, Infinity);
  assert.equal(typeof usage.cpuNs, 'number');
  assert.deepEqual(processes, []);
  assert.equal(readUsage(cgroups, path).memoryBytes, undefined);
});

test('paths that lead to the machine’s own groups are refused', () => {
  for (const path of ['/', '', 'x', '/x/../..', '/x/', '//x']) {
    assert.throws(() => removeCgroup({ mounts: [] }, path), RangeError, path);
  }
});

test('our own cgroup is found in each kind of hierarchy', () => {
  assert.equal(ownCgroup('9:name=systemd:/a\n8:pids:/b:c\n0::/d\n'), '/b:c');
  assert.equal(ownCgroup('4:cpu,pids:/both\n'), '/both');
  assert.equal(ownCgroup('0::/user.slice\n'), '/user.slice');
});
