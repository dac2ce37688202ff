import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { HostConfigBody } from '../host-config-schema.ts';
import { completeHostConfig } from '../host-config.ts';
import { withoutUnsupported } from './supported-limits.ts';

const all = { swap: true, swappiness: true, oomKillDisable: true, kernelMemory: true, blkioWeight: true };
const nothing = Object.fromEntries(Object.keys(all).map((key) => [key, false])) as typeof all;
const MB = 1024 * 1024;

const complete = (body: HostConfigBody) =>
  completeHostConfig(body, { logDriver: 'json-file', logOpts: {}, runtime: 'runc' });

const wishes: [HostConfigBody, RegExp][] = [
  [{ Memory: 10 * MB, MemorySwap: 20 * MB }, /swap limit/],
  [{ MemorySwappiness: 10 }, /swappiness/],
  [{ OomKillDisable: true }, /OomKillDisable/],
  [{ KernelMemory: 10 * MB }, /kernel memory/],
  [{ BlkioWeight: 500 }, /Block I\/O weight /],
  [{ BlkioWeightDevice: [{ Path: '/dev/null', Weight: 500 }] }, /weight_device/],
];

for (const [body, warning] of wishes) {
  test(`${JSON.stringify(body)} is discarded with a warning where the kernel has no such limit`, () => {
    const { hostConfig, warnings } = withoutUnsupported(complete(body), nothing);

    const [unsupported, ...others] = warnings.filter((text) => text.startsWith('Your kernel does not support'));
    assert.match(unsupported ?? '', warning);
    assert.deepEqual(others, []);
    assert.notDeepEqual(hostConfig, complete(body));
  });

  test(`${JSON.stringify(body)} is kept where the kernel has it`, () => {
    assert.deepEqual(withoutUnsupported(complete(body), all).hostConfig, complete(body));
  });
}

test('what is dangerous or of no use is said', () => {
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
