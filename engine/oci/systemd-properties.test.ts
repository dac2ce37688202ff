import assert from 'node:assert/strict';
import { test } from 'node:test';

import { propertyWords } from '../host/cgroups/systemd.ts';
import type { Limits } from './description.ts';
import { systemdAnnotations, systemdProperties } from './systemd-properties.ts';

const MB = 1 << 20;
const NONE: Limits = {
  ...{
    memoryBytes: 0,
    memoryReservationBytes: 0,
    memorySwapBytes: 0,
    kernelMemoryBytes: 0,
    kernelTcpBytes: 0,
    swappiness: -1,
  },
  ...{
    oomKillDisable: false,
    cpuShares: 0,
    cpuQuotaUs: 0,
    cpuPeriodUs: 0,
    realtimePeriodUs: 0,
    realtimeRuntimeUs: 0,
    nanoCpus: 0,
    cpusetCpus: '',
    cpusetMems: '',
  },
  ...{ pids: 0, blkioWeight: 0, blkioWeightDevices: [], readBps: [], writeBps: [], readIops: [], writeIops: [] },
};
const SOME: Limits = {
  ...NONE,
  ...{ memoryBytes: 64 * MB, memorySwapBytes: 96 * MB, memoryReservationBytes: 32 * MB, pids: 55 },
  ...{ cpuShares: 512, cpuQuotaUs: 33_333, cpuPeriodUs: 50_000, cpusetCpus: '0-1', blkioWeight: 300 },
};

test('a container without limits has no properties', () => {
  assert.deepEqual(systemdAnnotations(NONE, 2), {});
});

test('limits are told in the units of systemd', () => {
  assert.deepEqual(systemdAnnotations(SOME, 2), {
    'org.systemd.property.CPUQuotaPerSecUSec': 'uint64 670000',
    'org.systemd.property.CPUQuotaPeriodUSec': 'uint64 50000',
    'org.systemd.property.CPUWeight': 'uint64 20',
    'org.systemd.property.MemoryMax': `uint64 ${64 * MB}`,
    'org.systemd.property.MemorySwapMax': `uint64 ${32 * MB}`,
    'org.systemd.property.MemoryLow': `uint64 ${32 * MB}`,
    'org.systemd.property.TasksMax': 'uint64 55',
    'org.systemd.property.IOWeight': 'uint64 2930',
  });
});

test('with a limit of a device alone a scope has the files of input and output', () => {
  const one = [{ path: '/dev/x', rate: 1 }];
  for (const limits of [
    { ...NONE, readBps: one },
    { ...NONE, writeIops: one },
    { ...NONE, blkioWeightDevices: [{ path: '/dev/x', weight: 500 }] },
  ]) {
    assert.deepEqual(systemdAnnotations(limits, 2), { 'org.systemd.property.IOWeight': 'uint64 100' });
  }
  assert.equal(systemdProperties({ ...SOME, readBps: one }, 2)['IOWeight'], 2930);
});

test('on version 1 they have the names and units of version 1', () => {
  assert.deepEqual(systemdAnnotations(SOME, 1), {
    'org.systemd.property.CPUQuotaPerSecUSec': 'uint64 670000',
    'org.systemd.property.CPUQuotaPeriodUSec': 'uint64 50000',
    'org.systemd.property.CPUShares': 'uint64 512',
    'org.systemd.property.MemoryLimit': `uint64 ${64 * MB}`,
    'org.systemd.property.TasksMax': 'uint64 55',
    'org.systemd.property.BlockIOWeight': 'uint64 300',
  });
  const changed = { ...SOME, memoryBytes: 0, memorySwapBytes: -1, cpuShares: 1024 };
  assert.deepEqual(propertyWords(systemdProperties(SOME, 1), systemdProperties(changed, 1)), [
    'CPUShares=1024',
    'MemoryLimit=infinity',
  ]);
});

test('an update sends differences, and takes back missing values', () => {
  const changed = { ...SOME, memoryBytes: 0, memorySwapBytes: -1, pids: 66, nanoCpus: 1_500_000_000, cpusetCpus: '1' };

  assert.deepEqual(propertyWords(systemdProperties(SOME, 2), systemdProperties(changed, 2)), [
    'CPUQuota=150%',
    'CPUQuotaPeriodSec=100000us',
    'TasksMax=66',
    'AllowedCPUs=1',
    'MemoryMax=infinity',
    'MemorySwapMax=infinity',
  ]);
  assert.deepEqual(propertyWords(systemdProperties(SOME, 2), systemdProperties(SOME, 2)), []);
});
