import assert from 'node:assert/strict';
import { test } from 'node:test';

import { testErrorStatuses, testSteps } from '@gantry/testing/steps.contract.ts';

import { createSteps, statsSteps, updateSteps, waitSteps, wrongState } from './versions.ts';

testSteps('createSteps', createSteps, [
  {
    below: '1.40',
    request: {
      now: { Image: 'busybox', HostConfig: { IpcMode: '', KernelMemoryTCP: 5, Privileged: true } },
      older: { Image: 'busybox', HostConfig: { IpcMode: 'shareable', Privileged: true } },
    },
  },
  {
    below: '1.25',
    request: {
      now: { Image: 'busybox', AutoRemove: true, HostConfig: { AutoRemove: true, Privileged: true } },
      older: { Image: 'busybox', HostConfig: { AutoRemove: false, Privileged: true } },
    },
  },
]);

test('createSteps: the IPC namespace of a body without HostConfig, and one that the client chose', () => {
  const [step] = createSteps;

  assert.deepEqual(step!.request!({ Image: 'busybox' }), { Image: 'busybox', IpcMode: 'shareable' });
  assert.deepEqual(step!.request!({ HostConfig: { IpcMode: 'private' } }), { HostConfig: { IpcMode: 'private' } });
});

testSteps('updateSteps', updateSteps, [
  { below: '1.40', request: { now: { Memory: 1, PidsLimit: 5 }, older: { Memory: 1 } } },
]);

testSteps('waitSteps', waitSteps, [
  {
    below: '1.34',
    response: { now: { StatusCode: 128, Error: { Message: 'no such file' } }, older: { StatusCode: 128 } },
  },
]);

const counters = (each: number): object =>
  Object.fromEntries(
    ['rx_bytes', 'rx_packets', 'rx_errors', 'rx_dropped', 'tx_bytes', 'tx_packets', 'tx_errors', 'tx_dropped'].map(
      (key) => [key, each],
    ),
  );

testSteps('statsSteps', statsSteps, [
  {
    below: '1.21',
    response: {
      now: { read: 'now', name: '/x', id: 'x', networks: { eth0: counters(1), eth1: counters(2) } },
      older: { read: 'now', network: counters(3) },
    },
  },
]);

testErrorStatuses('wrongState', wrongState, [{ kind: 'conflict', below: '1.25', now: 409, older: 500 }]);
