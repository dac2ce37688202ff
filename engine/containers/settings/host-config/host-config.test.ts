import assert from 'node:assert/strict';
import { test } from 'node:test';

import { portKey } from '../port-bindings.ts';
import type { HostConfigBody } from './host-config-schema.ts';
import { completeHostConfig } from './host-config.ts';

const defaults = { logDriver: 'json-file', logOpts: {}, runtime: 'runc' };
const MB = 1024 * 1024;

const refused: [HostConfigBody, RegExp][] = [
  [{ Memory: MB }, /Minimum memory limit allowed is 6MB/],
  [{ MemorySwap: 100 * MB }, /always set the Memory limit/],
  [{ Memory: 100 * MB, MemorySwap: 50 * MB }, /memoryswap limit should be larger/],
  [{ Memory: 100 * MB, MemoryReservation: 200 * MB }, /memory reservation/],
  [{ MemorySwappiness: 101 }, /0-100/],
  [{ BlkioWeight: 9 }, /10 to 1000/],
  [{ BlkioWeight: 1001 }, /10 to 1000/],
  [{ CpuPeriod: 999 }, /cfs period/],
  [{ CpuQuota: 999 }, /cfs quota/],
  [{ ShmSize: -1 }, /SHM size/],
  [{ OomScoreAdj: 1001 }, /oom score adj/],
  [{ Ulimits: [{ Name: 'nofile', Soft: 20, Hard: 10 }] }, /soft limit must be less/],
  [{ RestartPolicy: { Name: 'sometimes' } }, /invalid restart policy/],
  [{ RestartPolicy: { Name: 'always', MaximumRetryCount: 3 } }, /maximum retry count/],
  [{ Tmpfs: { tmp: '' } }, /must be absolute/],
  [{ ExtraHosts: ['nohost'] }, /add-host/],
  [{ CapAdd: ['FLY'] }, /unknown capability/],
  [{ PortBindings: { '80/icmp': [{ HostPort: '80' }] } }, /invalid port/],
  [{ PortBindings: { '80/tcp': [{ HostPort: 'http' }] } }, /invalid port/],
  [{ NetworkMode: 'container:x', PortBindings: { '80/tcp': [{ HostPort: '80' }] } }, /conflicting options/],
  [{ NetworkMode: 'container:x', Dns: ['1.1.1.1'] }, /conflicting options/],
  [{ NetworkMode: 'container:x', PublishAllPorts: true }, /conflicting options: port publishing/],
  [{ NetworkMode: 'container:x', Links: ['a'] }, /container type network can't be used with links/],
];

for (const [body, message] of refused) {
  test(`${JSON.stringify(body)} is refused`, () => {
    assert.throws(() => completeHostConfig(body, defaults), { kind: 'invalid', message });
  });
}

test('an empty body has the defaults that an inspect shows', () => {
  const config = completeHostConfig({}, defaults);

  assert.equal(config.NetworkMode, 'default');
  assert.equal(config.ShmSize, 64 * MB);
  assert.deepEqual(config.LogConfig, { Type: 'json-file', Config: {} });
  assert.deepEqual(config.RestartPolicy, { Name: '', MaximumRetryCount: 0 });
  assert.equal(config.Binds, null);
});

test('a port without a protocol is a TCP port', () => {
  const { PortBindings } = completeHostConfig(
    { PortBindings: { '80': [{ HostPort: '8080' }], '53/UDP': null } },
    defaults,
  );

  assert.deepEqual(PortBindings, { '80/tcp': [{ HostIp: '', HostPort: '8080' }], '53/udp': [] });
});

test('a port is a number from 1 to 65535', () => {
  for (const port of ['0', '65536', '-1', 'http', '80/', '80/tcp/udp', '']) {
    assert.throws(() => portKey(port), { kind: 'invalid' }, port);
  }
});
