import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { HostConfigBody } from '../host-config/host-config-schema.ts';
import { completeHostConfig } from '../host-config/host-config.ts';
import { withoutUnsupported, type WeightSupport } from './supported-limits.ts';

const all = {
  ...{ memory: true, swap: true, swappiness: true, oomKillDisable: true, kernelMemory: true, kernelMemoryTcp: true },
  ...{ pids: true, cpuShares: true, cpuTime: true, cpuset: true, throttling: true },
};
const nothing = Object.fromEntries(Object.keys(all).map((key) => [key, false])) as typeof all;
const weights = (are: boolean): WeightSupport => ({ any: () => are, of: () => are });
const MB = 1024 * 1024;

const complete = (body: HostConfigBody) =>
  completeHostConfig(body, { logDriver: 'json-file', logOpts: {}, runtime: 'runc' });

const disk = [{ Path: '/dev/null', Rate: 5 }];
const wishes: [HostConfigBody, RegExp, support?: Partial<typeof all>][] = [
  [{ Memory: 10 * MB, MemorySwap: 20 * MB }, /swap limit capabilities.*Memory limited without swap/, { memory: true }],
  [{ Memory: 10 * MB, MemorySwap: -1 }, /memory limit capabilities/],
  [{ MemoryReservation: 10 * MB }, /memory soft limit/],
  [{ MemorySwappiness: 10 }, /swappiness/],
  [{ OomKillDisable: true }, /OomKillDisable\. OomKillDisable discarded/],
  [{ KernelMemory: 10 * MB }, /kernel memory/],
  [{ PidsLimit: 5 }, /PIDs limit/],
  [{ CpuShares: 512 }, /CPU shares/],
  [{ CpuQuota: 5000 }, /CPU CFS scheduler/],
  [{ CpusetCpus: '0' }, /cpuset/],
  [{ BlkioWeight: 500 }, /Block I\/O weight /],
  [{ BlkioWeightDevice: [{ Path: '/dev/null', Weight: 500 }] }, /weight_device/],
  [{ BlkioDeviceReadBps: disk }, /BPS Block I\/O read limit/],
  [{ BlkioDeviceWriteBps: disk }, /BPS Block I\/O write limit/],
  [{ BlkioDeviceReadIOps: disk }, /IOPS Block read limit/],
  [{ BlkioDeviceWriteIOps: disk }, /IOPS Block write limit/],
];

for (const [body, warning, support] of wishes) {
  test(`${JSON.stringify(body)} is discarded with a warning where the kernel has no such limit`, () => {
    const { hostConfig, warnings } = withoutUnsupported(complete(body), { ...nothing, ...support }, weights(false));

    const [unsupported, ...others] = warnings.filter((text) => text.startsWith('Your kernel does not support'));
    assert.match(unsupported ?? '', warning);
    assert.deepEqual(others, []);
    assert.notDeepEqual(hostConfig, complete(body));
  });

  test(`${JSON.stringify(body)} is kept where the kernel has it`, () => {
    assert.deepEqual(withoutUnsupported(complete(body), all, weights(true)).hostConfig, complete(body));
  });
}

test('a dangerous or useless limit has a warning', () => {
  const { warnings } = withoutUnsupported(
    complete({
      OomKillDisable: true,
      CpuPercent: 5,
      NetworkMode: 'host',
      PortBindings: { '80/tcp': [{ HostPort: '80' }] },
    }),
    all,
  );

  assert.equal(warnings.length, 3);
});
