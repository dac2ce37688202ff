import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { readCpuTime } from '../cpu-time.ts';
import { parseInterfaceCounters } from '../network/interface-counters.ts';
import { readCgroupStats } from './cgroup-stats.ts';
import type { Cgroups, Controller } from './cgroups.ts';

/** Files as a kernel had them, in a folder for each controller, or in one for all. */
class Recorded implements Disposable {
  readonly cgroups: Cgroups;
  readonly #root = mkdtempSync(join(tmpdir(), 'gantry-cgroup-'));

  constructor(version: 1 | 2, files: Readonly<Record<string, string>>) {
    const controllers = new Map<Controller, string>();
    for (const [path, text] of Object.entries(files)) {
      const [controller = '', file = ''] = path.split('/');
      const mount = version === 1 ? join(this.#root, controller) : this.#root;
      mkdirSync(join(mount, 'gantry/x'), { recursive: true });
      writeFileSync(join(mount, 'gantry/x', file), `${text}\n`);
      controllers.set(controller as Controller, mount);
    }
    this.cgroups = { version, hybrid: false, controllers, mounts: [] };
  }

  [Symbol.dispose](): void {
    rmSync(this.#root, { recursive: true });
  }
}

const at = (device: string, ...counters: (readonly [string, number])[]): unknown[] => {
  const [major, minor] = device.split(':').map(Number);
  return counters.map(([operation, value]) => ({ major, minor, operation, value }));
};

test('version 2: every counter of a cgroup', () => {
  using recorded = new Recorded(2, {
    'cpu/cpu.stat':
      'usage_usec 52873\nuser_usec 20001\nsystem_usec 32872\nnr_periods 7\nnr_throttled 3\nthrottled_usec 1200\nnr_bursts 0\nburst_usec 0',
    'memory/memory.current': '1433600',
    'memory/memory.peak': '5242880',
    'memory/memory.max': '67108864',
    'memory/memory.events': 'low 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0',
    'memory/memory.stat':
      'anon 90112\nfile 1060864\ninactive_file 819200\nworkingset_refault_anon 2\nworkingset_refault_file 40\npgfault 1543',
    'pids/pids.current': '3',
    'pids/pids.max': '100',
    'blkio/io.stat':
      '8:0 \n254:0 rbytes=1060864 wbytes=4096 rios=31 wios=1 dbytes=0 dios=0\n253:1 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0',
  });

  const stats = readCgroupStats(recorded.cgroups, '/gantry/x');

  assert.deepEqual(stats, {
    cpu: {
      ...{ totalNs: 52_873_000, kernelNs: 32_872_000, userNs: 20_001_000, perCpuNs: undefined },
      ...{ periods: 7, throttledPeriods: 3, throttledNs: 1_200_000 },
    },
    memory: {
      ...{ usageBytes: 1_433_600, maxUsageBytes: 5_242_880, failures: 2, limitBytes: 67_108_864 },
      counters: {
        anon: 90_112,
        file: 1_060_864,
        inactive_file: 819_200,
        workingset_refault_anon: 2,
        workingset_refault_file: 40,
        workingset_refault: 42,
        pgfault: 1543,
      },
    },
    pids: { current: 3, limit: 100 },
    io: {
      bytes: [...at('254:0', ['read', 1_060_864], ['write', 4096]), ...at('253:1', ['read', 1], ['write', 2])],
      operations: [...at('254:0', ['read', 31], ['write', 1]), ...at('253:1', ['read', 3], ['write', 4])],
      more: undefined,
    },
  });
});

test('version 2: no limits, and controllers that are not enabled', () => {
  using recorded = new Recorded(2, {
    'cpu/cpu.stat': 'usage_usec 1\nuser_usec 1\nsystem_usec 0',
    'memory/memory.current': '4096',
    'memory/memory.max': 'max',
    'pids/pids.max': 'max',
  });

  const stats = readCgroupStats(recorded.cgroups, '/gantry/x')!;

  assert.deepEqual([stats.memory.limitBytes, stats.memory.maxUsageBytes, stats.memory.counters], [Infinity, 0, {}]);
  assert.deepEqual([stats.pids, stats.io.bytes, stats.cpu.periods], [{ current: 0, limit: Infinity }, [], 0]);
  assert.equal(readCgroupStats(recorded.cgroups, '/gantry/gone'), undefined);
});

const VERSION_1 = {
  'cpuacct/cpuacct.usage': '37426639',
  'cpuacct/cpuacct.usage_percpu': '14018219 23408420 ',
  'cpuacct/cpuacct.stat': 'user 2\nsystem 1',
  'cpu/cpu.stat': 'nr_periods 5\nnr_throttled 4\nthrottled_time 99\nnr_bursts 0\nburst_time 0',
  'memory/memory.usage_in_bytes': '1122304',
  'memory/memory.max_usage_in_bytes': '4177920',
  'memory/memory.failcnt': '6',
  'memory/memory.limit_in_bytes': '9223372036854771712',
  'memory/memory.stat': 'cache 847872\nhierarchical_memory_limit 9223372036854771712\ntotal_rss 53248',
  'pids/pids.current': '1',
  'pids/pids.max': 'max',
  'blkio/blkio.throttle.io_service_bytes': '254:0 Read 864256\n254:0 Total 864256\nTotal 864256',
  'blkio/blkio.throttle.io_serviced': '254:0 Read 55\n254:0 Total 55\nTotal 55',
};

test('version 1: every counter of a cgroup', () => {
  using recorded = new Recorded(1, VERSION_1);

  const stats = readCgroupStats(recorded.cgroups, '/gantry/x');

  assert.deepEqual(stats, {
    cpu: {
      ...{ totalNs: 37_426_639, kernelNs: 10_000_000, userNs: 20_000_000, perCpuNs: [14_018_219, 23_408_420] },
      ...{ periods: 5, throttledPeriods: 4, throttledNs: 99 },
    },
    memory: {
      ...{ usageBytes: 1_122_304, maxUsageBytes: 4_177_920, failures: 6, limitBytes: Infinity },
      counters: { cache: 847_872, hierarchical_memory_limit: 9_223_372_036_854_771_712n, total_rss: 53_248 },
    },
    pids: { current: 1, limit: Infinity },
    io: {
      bytes: at('254:0', ['Read', 864_256], ['Total', 864_256]),
      operations: at('254:0', ['Read', 55], ['Total', 55]),
      more: { queued: [], serviceTime: [], waitTime: [], merged: [], time: [], sectors: [] },
    },
  });
});

test('version 1: a scheduler that counts by cgroup', () => {
  using recorded = new Recorded(1, {
    ...VERSION_1,
    'blkio/blkio.io_serviced_recursive': '8:0 Read 3\n8:0 Total 3\nTotal 3',
    'blkio/blkio.io_service_bytes_recursive': '8:0 Read 12288\n8:0 Total 12288\nTotal 12288',
    'blkio/blkio.time_recursive': '8:0 77',
    'blkio/blkio.sectors_recursive': '8:0 24',
  });

  const { io } = readCgroupStats(recorded.cgroups, '/gantry/x')!;

  assert.deepEqual(io.operations, at('8:0', ['Read', 3], ['Total', 3]));
  assert.deepEqual(io.bytes, at('8:0', ['Read', 12_288], ['Total', 12_288]));
  assert.deepEqual(io.more?.time, at('8:0', ['', 77]));
  assert.deepEqual([io.more?.sectors, io.more?.queued], [at('8:0', ['', 24]), []]);
});

test('the time of all CPUs is without the time that other machines took', () => {
  const stat =
    'cpu  10 2 30 400 5 6 7 1000 0 0\ncpu0 5 1 15 200 2 3 3 500 0 0\ncpu1 5 1 15 200 3 3 4 500 0 0\nintr 9 cpu2\n';

  assert.deepEqual(readCpuTime(stat), { totalNs: 460 * 10_000_000, online: 2 });
  assert.ok(readCpuTime().online >= 1);
});

test('counters of interfaces, also next to their colon', () => {
  const text = `Inter-|   Receive                        |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    0    0     0          0         0        0       0    0    0    0     0       0          0
  eth0:1112 12 1 2 0 0 0 0 700 8 3 4 0 0 0 0
`;

  const [, eth0] = parseInterfaceCounters(text);

  assert.deepEqual(eth0, {
    name: 'eth0',
    ...{ rxBytes: 1112, rxPackets: 12, rxErrors: 1, rxDropped: 2 },
    ...{ txBytes: 700, txPackets: 8, txErrors: 3, txDropped: 4 },
  });
});
