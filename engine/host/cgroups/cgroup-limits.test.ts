import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

import { applyLimits, LimitRefused, planLimits, revertLimits, type LimitValues } from './cgroup-limits.ts';
import type { Cgroups, Controller } from './cgroups.ts';

const MB = 1 << 20;
const CONTROLLERS: readonly Controller[] = ['cpu', 'cpuset', 'memory', 'pids', 'blkio'];

/** Files that take whatever is written. */
class Files implements Disposable {
  readonly cgroups: Cgroups;
  readonly #root = mkdtempSync(join(tmpdir(), 'gantry-limits-'));

  constructor(version: 1 | 2, texts: Readonly<Record<string, string>>) {
    const controllers = new Map(CONTROLLERS.map((name) => [name, this.#root]));
    this.cgroups = { version, hybrid: false, controllers, mounts: [] };
    mkdirSync(join(this.#root, 'x'));
    for (const [file, text] of Object.entries(texts)) writeFileSync(this.at(file), `${text}\n`);
  }

  at(file: string): string {
    return join(this.#root, 'x', file);
  }

  textOf(file: string): string {
    return readFileSync(this.at(file), 'utf8').split('\n', 1)[0]!;
  }

  /** The writes as `file=text`. */
  async plan(values: LimitValues): Promise<string[]> {
    const writes = await planLimits(this.cgroups, '/x', values);
    return writes.map(({ path, after }) => `${path.slice(dirname(path).length + 1)}=${after}`);
  }

  [Symbol.dispose](): void {
    rmSync(this.#root, { recursive: true });
  }
}

const VERSION_1 = {
  'cpu.shares': '1024',
  'cpu.cfs_period_us': '100000',
  'cpu.cfs_quota_us': '-1',
  'cpu.rt_period_us': '1000000',
  'cpu.rt_runtime_us': '5000',
  'cpuset.cpus': '0-3',
  'cpuset.mems': '0',
  'memory.limit_in_bytes': String(64 * MB),
  'memory.memsw.limit_in_bytes': String(128 * MB),
  'memory.soft_limit_in_bytes': '9223372036854771712',
  'pids.max': 'max',
  'blkio.bfq.weight': '100',
};
const VERSION_2 = {
  'cpu.weight': '100',
  'cpu.max': 'max 100000',
  'cpuset.cpus': '',
  'cpuset.mems': '',
  'memory.max': 'max',
  'memory.swap.max': 'max',
  'memory.low': '0',
  'pids.max': 'max',
  'io.weight': 'default 100',
};

const cases: readonly [version: 1 | 2, LimitValues, writes: readonly string[]][] = [
  [1, { cpuShares: 512 }, ['cpu.shares=512']],
  [1, { cpuShares: 1024 }, []],
  [1, { cpuTime: { quotaUs: 50_000, periodUs: 0 } }, ['cpu.cfs_quota_us=50000']],
  [1, { cpuTime: { quotaUs: 0, periodUs: 50_000 } }, ['cpu.cfs_period_us=50000']],
  [1, { cpuTime: { quotaUs: 9000, periodUs: 50_000 } }, ['cpu.cfs_period_us=50000', 'cpu.cfs_quota_us=9000']],
  [1, { realtime: { periodUs: 0, runtimeUs: 7000 } }, ['cpu.rt_runtime_us=7000']],
  [1, { realtime: { periodUs: 2_000_000, runtimeUs: 7000 } }, ['cpu.rt_period_us=2000000', 'cpu.rt_runtime_us=7000']],
  [1, { realtime: { periodUs: 500_000, runtimeUs: 7000 } }, ['cpu.rt_runtime_us=7000', 'cpu.rt_period_us=500000']],
  [1, { cpusetCpus: '1', cpusetMems: '0' }, ['cpuset.cpus=1']],
  [
    1,
    { memory: { bytes: 32 * MB, withSwapBytes: 64 * MB } },
    [`memory.limit_in_bytes=${32 * MB}`, `memory.memsw.limit_in_bytes=${64 * MB}`],
  ],
  [
    1,
    { memory: { bytes: 256 * MB, withSwapBytes: 512 * MB } },
    [`memory.memsw.limit_in_bytes=${512 * MB}`, `memory.limit_in_bytes=${256 * MB}`],
  ],
  [1, { memory: { bytes: 0, withSwapBytes: -1 } }, ['memory.memsw.limit_in_bytes=-1', 'memory.limit_in_bytes=-1']],
  [1, { reservationBytes: 16 * MB, pids: 7 }, ['pids.max=7', `memory.soft_limit_in_bytes=${16 * MB}`]],
  [1, { blkioWeight: 500 }, ['blkio.bfq.weight=500']],
  [2, { cpuShares: 1024 }, ['cpu.weight=39']],
  [2, { cpuShares: 2 }, ['cpu.weight=1']],
  [2, { cpuShares: 262_144 }, ['cpu.weight=10000']],
  [2, { cpuTime: { quotaUs: 50_000, periodUs: 0 } }, ['cpu.max=50000 100000']],
  [2, { cpuTime: { quotaUs: 0, periodUs: 50_000 } }, ['cpu.max=max 50000']],
  [2, { realtime: { periodUs: 500_000, runtimeUs: 7000 } }, []],
  [2, { cpusetCpus: '0-1', cpusetMems: '0' }, ['cpuset.cpus=0-1', 'cpuset.mems=0']],
  [2, { memory: { bytes: 32 * MB, withSwapBytes: 48 * MB } }, [`memory.swap.max=${16 * MB}`, `memory.max=${32 * MB}`]],
  [2, { memory: { bytes: 32 * MB, withSwapBytes: -1 } }, [`memory.max=${32 * MB}`]],
  [2, { reservationBytes: 16 * MB, pids: 7 }, ['pids.max=7', `memory.low=${16 * MB}`]],
  [2, { blkioWeight: 10 }, ['io.weight=default 1']],
  [2, { blkioWeight: 1000 }, ['io.weight=default 10000']],
];

for (const [version, values, writes] of cases) {
  test(`version ${version}: ${JSON.stringify(values)}`, async () => {
    using files = new Files(version, version === 1 ? VERSION_1 : VERSION_2);

    assert.deepEqual(await files.plan(values), writes);
  });
}

test('a quota and its period change with no quota in between, and back', async () => {
  using files = new Files(1, { ...VERSION_1, 'cpu.cfs_quota_us': '25000' });
  const values = { cpuTime: { quotaUs: 9000, periodUs: 10_000 } };
  const writes = await planLimits(files.cgroups, '/x', values);

  await applyLimits(writes);

  assert.deepEqual(
    writes.map(({ before, after }) => [before, after]),
    [
      ['25000', '-1'],
      ['100000', '10000'],
      ['-1', '9000'],
    ],
  );
  await revertLimits(writes);
  assert.deepEqual([files.textOf('cpu.cfs_quota_us'), files.textOf('cpu.cfs_period_us')], ['25000', '100000']);
});

test('a write that fails takes back those before it, also an empty text', async () => {
  using files = new Files(2, VERSION_2);
  const writes = await planLimits(files.cgroups, '/x', { cpusetCpus: '0', pids: 5, cpuShares: 2 });
  rmSync(files.at('cpu.weight'));

  await assert.rejects(applyLimits(writes), (error) => error instanceof LimitRefused && error.isGone);

  assert.deepEqual([files.textOf('cpuset.cpus'), files.textOf('pids.max')], ['', 'max']);
});
