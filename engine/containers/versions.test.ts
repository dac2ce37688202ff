import assert from 'node:assert/strict';
import { test } from 'node:test';

import { testErrorStatuses, testSteps } from '@gantry/testing/steps.contract.ts';

import { MAC_IS_DEPRECATED } from './networks/requested-networks.ts';
import { DRIVER_IS_IGNORED } from './settings/mounts/requested-mounts.ts';
import {
  createSteps,
  inspectForm,
  inspectSteps,
  listSteps,
  statsSteps,
  updateSteps,
  waitSteps,
  wrongState,
} from './versions.ts';

const endpoint = (more: object): object => ({
  NetworkSettings: { Networks: { one: { IPAddress: '10.1.0.2', ...more } } },
});
const NAMED = { Aliases: ['web'], DNSNames: ['box', 'web', 'abc'] };
const shown = {
  now: endpoint({ ...NAMED, GwPriority: 1 }),
  at144: endpoint({ ...NAMED, Aliases: ['web', 'abc'], GwPriority: 1 }),
};

testSteps('createSteps', createSteps, [
  {
    below: '1.52',
    request: { now: {}, older: { leavesEmptyBindings: true } },
  },
  {
    below: '1.48',
    request: { now: {}, older: { takesInterfaceSysctls: true } },
    response: {
      now: { Id: 'x', Warnings: ['one', DRIVER_IS_IGNORED] },
      older: { Id: 'x', Warnings: ['one'] },
    },
  },
  {
    below: '1.44',
    request: {
      now: { NetworkingConfig: { EndpointsConfig: { one: { MacAddress: 'a', Aliases: ['b'] }, two: null } } },
      older: { NetworkingConfig: { EndpointsConfig: { one: { Aliases: ['b'] }, two: null } } },
    },
    response: {
      now: { Id: 'a', Warnings: [MAC_IS_DEPRECATED, 'another'] },
      older: { Id: 'a', Warnings: ['another'] },
    },
  },
  {
    below: '1.44',
    request: { now: { Image: 'busybox' }, older: { Image: 'busybox', readOnlyIsFlat: true } },
  },
  {
    below: '1.42',
    request: {
      now: {
        HostConfig: {
          Mounts: [
            { Type: 'bind', TmpfsOptions: {}, VolumeOptions: {} },
            { Type: 'tmpfs', TmpfsOptions: {}, VolumeOptions: {} },
          ],
        },
      },
      older: {
        HostConfig: {
          Mounts: [
            { Type: 'bind', VolumeOptions: {} },
            { Type: 'tmpfs', TmpfsOptions: {} },
          ],
        },
      },
    },
  },
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

for (const body of [{}, { NetworkingConfig: {} }, { NetworkingConfig: { EndpointsConfig: {} } }]) {
  test(`createSteps: ${JSON.stringify(body)} has no hardware addresses to drop`, () => {
    assert.deepEqual(createSteps.find(({ below }) => below === '1.44')?.request?.(body), body);
  });
}

testSteps('inspectSteps', inspectSteps, [
  { below: '1.45', response: { now: shown.now, older: shown.at144 } },
  {
    below: '1.44',
    response: { now: shown.at144, older: endpoint({ Aliases: ['web', 'abc'] }) },
  },
]);

testSteps('listSteps', listSteps, [
  { below: '1.45', response: { now: [shown.now], older: [shown.at144] } },
  { below: '1.44', response: { now: [shown.at144], older: [endpoint({ Aliases: ['web', 'abc'] })] } },
]);

test('the form of an inspect is one function for all versions without a step between them', () => {
  const forms = (['1.12', '1.24', '1.43', '1.44', '1.45', '1.55'] as const).map(inspectForm);

  assert.equal(new Set(forms).size, 3);
  assert.deepEqual([forms[0], forms[4]], [forms[2], forms[5]]);
});

test('createSteps: the IPC namespace of a body without HostConfig, and one that the client chose', () => {
  const step = createSteps.find(({ below }) => below === '1.40');

  assert.deepEqual(step!.request!({ Image: 'busybox' }), { Image: 'busybox', IpcMode: 'shareable' });
  assert.deepEqual(step!.request!({ HostConfig: { IpcMode: 'private' } }), { HostConfig: { IpcMode: 'private' } });
});

testSteps('updateSteps', updateSteps, [
  {
    below: '1.55',
    request: {
      now: { Memory: 1, BlkioWeight: 10, BlkioWeightDevice: [], BlkioDeviceReadBps: [{ Path: '/x', Rate: 1 }] },
      older: { Memory: 1, BlkioWeight: 10 },
    },
  },
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
