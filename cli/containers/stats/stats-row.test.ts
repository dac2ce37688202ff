import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Stats } from '@gantry/client/containers.ts';

import { figuresOf, ORDERS, rowOf, type Watched } from './stats-row.ts';

const NO_DEVICES = null;
const network = {
  rx_bytes: 1000,
  rx_packets: 0,
  rx_errors: 0,
  rx_dropped: 0,
  tx_bytes: 10,
  tx_packets: 0,
  tx_errors: 0,
  tx_dropped: 0,
};

function sample(more: Partial<Stats>): Stats {
  const cpu = (total: number, system: number): Stats['cpu_stats'] => ({
    cpu_usage: { total_usage: total, usage_in_kernelmode: 0, usage_in_usermode: 0 },
    system_cpu_usage: system,
    online_cpus: 2,
    throttling_data: { periods: 0, throttled_periods: 0, throttled_time: 0 },
  });
  return {
    ...{ read: '', preread: '', num_procs: 0, storage_stats: {}, name: '/web', id: 'a'.repeat(64) },
    os_type: 'linux',
    pids_stats: { current: 3 },
    blkio_stats: {
      io_service_bytes_recursive: [
        { major: 8, minor: 0, op: 'Read', value: 5000 },
        { major: 8, minor: 0, op: 'Write', value: 7 },
        { major: 8, minor: 0, op: 'Total', value: 5007 },
        { major: 9, minor: 0, op: 'read', value: 1000 },
      ],
      ...{ io_serviced_recursive: NO_DEVICES, io_queue_recursive: NO_DEVICES, io_service_time_recursive: NO_DEVICES },
      ...{ io_wait_time_recursive: NO_DEVICES, io_merged_recursive: NO_DEVICES, io_time_recursive: NO_DEVICES },
      sectors_recursive: NO_DEVICES,
    },
    cpu_stats: cpu(1500, 4000),
    precpu_stats: cpu(1000, 2000),
    memory_stats: { usage: 3 << 20, limit: 64 << 20, stats: { total_inactive_file: 1 << 20 } },
    networks: { eth0: network, eth1: network },
    ...more,
  };
}

const watched = (name: string, stats: Stats): Watched => ({ ref: name, id: stats.id, name, figures: figuresOf(stats) });

test('a row has the figures of all CPUs, networks and devices, and memory without files', () => {
  const row = rowOf(watched('web', sample({})), { whole: false });

  assert.deepEqual(row, {
    ...{ Container: 'web', ID: 'a'.repeat(12), Name: 'web', CPUPerc: '50.00%' },
    ...{ MemUsage: '2MiB / 64MiB', MemPerc: '3.13%', NetIO: '2kB / 20B', BlockIO: '6kB / 7B', PIDs: '3' },
  });
});

test('a container that does not run has no figures', () => {
  const row = rowOf(watched('web', sample({ memory_stats: {} })), { whole: true });

  assert.deepEqual([row['CPUPerc'], row['MemUsage'], row['PIDs'], row['ID']], ['--', '-- / --', '--', 'a'.repeat(64)]);
});

test('version 2 of cgroups has another word for files', () => {
  const memory_stats = { usage: 3 << 20, limit: 64 << 20, stats: { inactive_file: 2 << 20 } };

  assert.equal(figuresOf(sample({ memory_stats }))?.memoryBytes, 1 << 20);
});

test('without a reading before there is no share of a CPU', () => {
  const { cpu_stats } = sample({});

  assert.equal(figuresOf(sample({ precpu_stats: cpu_stats }))?.cpuPercent, 0);
});

test('rows are sorted by name, or the largest first, those without figures last', () => {
  const few = watched('b', sample({ pids_stats: { current: 1 } }));
  const many = watched('c', sample({ pids_stats: { current: 9 } }));
  const none = watched('a', sample({ memory_stats: {} }));

  const sorted = (by: string): string =>
    [few, many, none]
      .toSorted(ORDERS[by])
      .map(({ name }) => name)
      .join('');

  assert.deepEqual([sorted('name'), sorted('pids'), sorted('cpu')], ['abc', 'cba', 'bca']);
});
