import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseHost } from './hosts.ts';

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
