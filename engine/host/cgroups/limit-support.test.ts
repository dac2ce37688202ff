import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';

import { readUsage, type Cgroups, type Controller } from './cgroups.ts';
import { limitSupport, type LimitSupport } from './limit-support.ts';

const folder = mkdtempSync(join(tmpdir(), 'gantry-cgroups-'));
after(() => rmSync(folder, { recursive: true }));

/** Files of a container's scope with limits, on Debian 12 with version 2 alone. */
const SCOPE: Readonly<Record<string, string>> = {
  'memory.current': '1851392\n',
  'memory.max': '67108864\n',
  'memory.swap.max': '67108864\n',
  'pids.current': '1\n',
  'pids.max': 'max\n',
  'cpu.stat': 'usage_usec 19512\nuser_usec 8129\nsystem_usec 11382\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n',
};

test('version 2 has its limits where the root shows none', () => {
  const mount = tree({ 'cgroup.controllers': 'cpuset cpu io memory pids\n', ...below('system.slice', SCOPE) });
  const cgroups = unified(mount, ['cpu', 'cpuset', 'memory', 'pids', 'blkio']);

  assert.deepEqual(wanting(limitSupport(cgroups)), [
    'swappiness',
    'oomKillDisable',
    'kernelMemory',
    'kernelMemoryTcp',
    'realtime',
  ]);
});

test('version 2 of a kernel that does not count swap cannot limit it', () => {
  const { 'memory.swap.max': _, ...withoutSwap } = SCOPE;
  const mount = tree(below('system.slice', withoutSwap));

  assert.equal(limitSupport(unified(mount, ['memory'])).swap, false);
});

test('a controller that is missing limits nothing', () => {
  const found = limitSupport(unified(tree({}), ['cpu', 'devices', 'freezer']));

  assert.deepEqual(
    Object.entries(found).flatMap(([name, has]) => (has ? [name] : [])),
    ['cpuTime', 'cpuShares'],
  );
});

test('version 1 tells by its files', () => {
  const mount = tree({
    'memory/memory.limit_in_bytes': '9223372036854771712\n',
    'memory/memory.swappiness': '60\n',
    'memory/memory.oom_control': 'oom_kill_disable 0\n',
    'cpu/cpu.shares': '1024\n',
  });
  const controllers = new Map<Controller, string>(
    (['memory', 'cpu', 'pids'] as const).map((name) => [name, join(mount, name)]),
  );

  const found = limitSupport({ version: 1, hybrid: false, controllers, mounts: [] });

  assert.deepEqual(wanting(found), [
    'swap',
    'kernelMemory',
    'kernelMemoryTcp',
    'cpuTime',
    'realtime',
    'cpuset',
    'throttling',
    'blkioWeight',
  ]);
});

test('usage and limits of version 2 are read', () => {
  const cgroups = unified(tree(below('system.slice/gantry-c1.scope', SCOPE)), ['cpu', 'memory', 'pids']);

  assert.deepEqual(readUsage(cgroups, '/system.slice/gantry-c1.scope'), {
    memoryBytes: 1_851_392,
    memoryLimitBytes: 67_108_864,
    pids: 1,
    pidsLimit: Infinity,
    cpuNs: 19_512_000,
  });
});

function wanting(support: LimitSupport): string[] {
  return Object.entries(support).flatMap(([name, has]) => (has ? [] : [name]));
}

function unified(mount: string, controllers: readonly Controller[]): Cgroups {
  return { version: 2, hybrid: false, controllers: new Map(controllers.map((name) => [name, mount])), mounts: [mount] };
}

function below(path: string, files: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(files).map(([name, text]) => [join(path, name), text]));
}

function tree(files: Readonly<Record<string, string>>): string {
  const mount = mkdtempSync(join(folder, 'mount-'));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(mount, name)), { recursive: true });
    writeFileSync(join(mount, name), text);
  }
  return mount;
}
