import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { parsePageAddress, parseHost } from './hosts.ts';

for (const [text, tls, expected] of [
  ['unix:///run/a.sock', false, { kind: 'unix', path: '/run/a.sock' }],
  ['tcp://', false, { kind: 'tcp', address: '127.0.0.1', port: 2375 }],
  ['tcp://', true, { kind: 'tcp', address: '127.0.0.1', port: 2376 }],
  ['tcp://:4000', true, { kind: 'tcp', address: '127.0.0.1', port: 4000 }],
  ['tcp://localhost:0', false, { kind: 'tcp', address: '127.0.0.1', port: 0 }],
  ['tcp://0.0.0.0', true, { kind: 'tcp', address: '0.0.0.0', port: 2376 }],
  ['tcp://[::1]:5', false, { kind: 'tcp', address: '::1', port: 5 }],
  ['tcp://box.example:5/', false, { kind: 'tcp', address: 'box.example', port: 5 }],
] as const) {
  test(`${text} ${tls ? 'with' : 'without'} TLS`, () => {
    assert.deepEqual(parseHost(text, tls), expected);
  });
}

for (const text of ['', 'unix://', '/run/a.sock', 'fd://3', 'tcp://a:b', 'tcp://a:1:2', 'tcp://a:65536', 'npipe://x']) {
  test(`"${text}" is no host`, () => {
    assert.throws(() => parseHost(text, false), /is not a host/);
  });
}

test('the path of a socket is as long as the kernel takes', () => {
  const path = `/${'ö'.repeat(53)}`;

  assert.deepEqual(parseHost(`unix://${path}`, false), { kind: 'unix', path });
  assert.throws(() => parseHost(`unix://${path}p`, false), /: the path of a socket has at most 107 bytes$/);
});

suite('the address of the page', () => {
  test('without certificates of clients only this machine reaches it', () => {
    assert.deepEqual(parsePageAddress('127.0.0.1:9000', false), { host: '127.0.0.1', port: 9000 });
    assert.deepEqual(parsePageAddress('[::1]:9000', false), { host: '::1', port: 9000 });
    assert.deepEqual(parsePageAddress('9000', false), { host: '127.0.0.1', port: 9000 });
    for (const text of ['0.0.0.0:9000', '127.0.0.2:9000', '[::]:9000', 'name:9000']) {
      assert.throws(() => parsePageAddress(text, false), /no address for the page/);
    }
  });

  test('with certificates of clients it may be any address of the machine', () => {
    assert.deepEqual(parsePageAddress('0.0.0.0:9443', true), { host: '0.0.0.0', port: 9443 });
    assert.deepEqual(parsePageAddress('[fd00::1]:9443', true), { host: 'fd00::1', port: 9443 });
    for (const text of ['name:9443', '0.0.0.0', 'tcp://0.0.0.0:9443']) {
      assert.throws(() => parsePageAddress(text, true), /expected ADDRESS:port/);
    }
  });
});
