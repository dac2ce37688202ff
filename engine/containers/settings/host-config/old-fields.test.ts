import assert from 'node:assert/strict';
import { test } from 'node:test';

import { hostConfigOf } from './old-fields.ts';

type Body = Parameters<typeof hostConfigOf>[0];
const bodies: [body: Body, expected: object][] = [
  [{}, {}],
  [
    { Memory: 5, Binds: ['a:/b'], Privileged: true },
    { Memory: 5, Binds: ['a:/b'], Privileged: true },
  ],
  [{ Cpuset: '1' }, { CpusetCpus: '1' }],
  [{ Cpuset: '1', CpusetCpus: '0' }, { CpusetCpus: '0' }],
  [
    { Memory: 5, MemorySwap: -1, CpuShares: 6, VolumeDriver: 'd', Cpuset: '1', HostConfig: {} },
    { Memory: 5, MemorySwap: -1, CpuShares: 6, VolumeDriver: 'd', CpusetCpus: '1' },
  ],
  [
    { Memory: 5, CpuShares: 6, HostConfig: { Memory: 7, CpuShares: 0 } },
    { Memory: 7, CpuShares: 6 },
  ],
  [{ Binds: ['a:/b'], NetworkMode: 'host', HostConfig: { Dns: ['1.1.1.1'] } }, { Dns: ['1.1.1.1'] }],
];
for (const [body, expected] of bodies) {
  test(`the HostConfig of ${JSON.stringify(body)}`, () => {
    assert.deepEqual(hostConfigOf(body), expected);
  });
}

test('fields of the container are not in its HostConfig', () => {
  const body = { Image: 'busybox', Cmd: ['true'], StopSignal: 'TERM', Memory: 5 };

  assert.deepEqual(hostConfigOf(body), { Memory: 5 });
});
