import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  addressText,
  advertiseAddress,
  dataPathAddress,
  listenAddress,
  readAddress,
  remoteAddress,
  tunnelPort,
} from './addresses.ts';

const link = (address: string, internal = false) =>
  ({ address, family: address.includes(':') ? 'IPv6' : 'IPv4', internal }) as const;
const LINKS = {
  lo: [link('127.0.0.1', true)],
  eth0: [link('fe80::1'), link('10.0.0.1')],
  br0: [link('172.18.0.1')],
};
const isOurs = (name: string): boolean => name === 'br0';

test('a manager listens on an address or an interface, on port 2377 where none is named', () => {
  const cases: [text: string, expected: string][] = [
    ['0.0.0.0', '0.0.0.0:2377'],
    ['0.0.0.0:2377', '0.0.0.0:2377'],
    ['10.0.0.1:4000', '10.0.0.1:4000'],
    ['eth0', '10.0.0.1:2377'],
    ['eth0:4000', '10.0.0.1:4000'],
    ['::1', '[::1]:2377'],
    ['[::1]:4000', '[::1]:4000'],
  ];

  for (const [text, expected] of cases) assert.equal(addressText(listenAddress(text, LINKS)), expected);
  assert.throws(() => listenAddress('', LINKS), { message: 'invalid ListenAddr "": invalid empty address' });
  for (const text of [
    'nowhere',
    'eth1:2377',
    '10.0.0.1:0',
    '10.0.0.1:65535',
    '10.0.0.1:x',
    'a:b:c',
    'constructor',
    '__proto__:1',
  ]) {
    assert.throws(() => listenAddress(text, LINKS), { kind: 'invalid', message: /^listen address must be/ });
  }
});

test('it advertises the given address, else that of its listener, else the only address outside its own networks', () => {
  const all = { ip: '0.0.0.0', port: 4000 };

  assert.deepEqual(advertiseAddress('eth0', all, isOurs, LINKS), { ip: '10.0.0.1', port: 4000 });
  assert.deepEqual(advertiseAddress('10.9.9.9:1', all, isOurs, LINKS), { ip: '10.9.9.9', port: 1 });
  assert.deepEqual(advertiseAddress('', { ip: '10.0.0.1', port: 1 }, isOurs, LINKS), { ip: '10.0.0.1', port: 1 });
  assert.deepEqual(advertiseAddress('', all, isOurs, LINKS), { ip: '10.0.0.1', port: 4000 });
  for (const text of ['0.0.0.0', '::', '224.0.0.1', '255.255.255.255', 'ff02::1', 'fe80::1%eth0']) {
    assert.throws(() => advertiseAddress(text, all, isOurs, LINKS), {
      message: /^advertise address must be a non-zero/,
    });
  }
  assert.throws(
    () => advertiseAddress('', all, () => false, LINKS),
    /multiple addresses on different interfaces \(10\.0\.0\.1 on eth0 and 172/,
  );
  assert.throws(() => advertiseAddress('', all, isOurs, {}), /could not find the system's IP address/);
});

test('addresses are written as they are read', () => {
  for (const text of ['10.0.0.1:2377', '[fd00::1]:2377']) assert.equal(addressText(readAddress(text)), text);
  assert.equal(remoteAddress('10.0.0.1'), '10.0.0.1:2377');
  assert.equal(remoteAddress('manager.example:99'), 'manager.example:99');
  assert.throws(() => remoteAddress(':99'), { kind: 'invalid' });
});

test('the data path is an address or an interface without a port, and not named by default', () => {
  assert.deepEqual(
    ['', 'eth0', '10.9.9.9', '::1'].map((text) => dataPathAddress(text, LINKS)),
    [undefined, '10.0.0.1', '10.9.9.9', '::1'],
  );
  for (const text of ['0.0.0.0', '::', 'nowhere', 'eth0:4789', '10.0.0.1:4789', '[::1]', '__proto__', 'fe80::1%eth0']) {
    assert.throws(() => dataPathAddress(text, LINKS), { kind: 'invalid', message: /^data path address must be/ });
  }
});

test('the port of tunnels is between 1024 and 49151', () => {
  assert.deepEqual([0, 1024, 49_151].map(tunnelPort), [undefined, 1024, 49_151]);
  for (const port of [1, 1023, 49_152, 65_536, Number.MAX_SAFE_INTEGER]) {
    assert.throws(() => tunnelPort(port), {
      message: `Datapath port number is not in valid range (1024-49151) : ${port}`,
    });
  }
});
