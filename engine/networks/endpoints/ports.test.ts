import assert from 'node:assert/strict';
import { test } from 'node:test';

import { wantedPorts, type PortBindings } from './ports.ts';

test('bindings are read in every form that clients send', () => {
  const bindings: PortBindings = {
    '80/tcp': [
      { HostIp: '', HostPort: '8080' },
      { HostIp: '127.0.0.1', HostPort: '8000-8010' },
    ],
    '53/udp': [{ HostIp: null, HostPort: null }],
    '81': [{ HostPort: '0' }],
    '82/tcp': null,
    '83/tcp': [],
  };

  assert.deepEqual(wantedPorts(bindings, false, ['99/tcp']), [
    // Keys that are whole numbers come first in JavaScript's order of keys.
    { containerPort: 81, protocol: 'tcp', hostIp: '', range: undefined },
    { containerPort: 80, protocol: 'tcp', hostIp: '', range: { first: 8080, last: 8080 } },
    { containerPort: 80, protocol: 'tcp', hostIp: '127.0.0.1', range: { first: 8000, last: 8010 } },
    { containerPort: 53, protocol: 'udp', hostIp: '', range: undefined },
  ]);
});

test('publishing all takes exposed ports without a binding', () => {
  const wanted = wantedPorts({ '80/tcp': [{ HostPort: '8080' }] }, true, ['80/tcp', '53/udp', '9000']);

  assert.deepEqual(
    wanted.map(({ containerPort, protocol, range }) => [containerPort, protocol, range?.first]),
    [
      [80, 'tcp', 8080],
      [53, 'udp', undefined],
      [9000, 'tcp', undefined],
    ],
  );
});

test('texts that are no port, range or address are refused', () => {
  const refused: PortBindings[] = [
    { 'x/tcp': [{}] },
    { '0/tcp': [{}] },
    { '80/sctp': [{}] },
    { '80/tcp/x': [{}] },
    { '70000/tcp': [{}] },
    { '80/tcp': [{ HostPort: '70000' }] },
    { '80/tcp': [{ HostPort: '8010-8000' }] },
    { '80/tcp': [{ HostPort: '-1' }] },
    { '80/tcp': [{ HostPort: '0-5' }] },
    { '80/tcp': [{ HostPort: 'http' }] },
    { '80/tcp': [{ HostIp: 'localhost' }] },
    { '80/tcp': [{ HostIp: '::g' }] },
  ];

  for (const bindings of refused) {
    assert.throws(() => wantedPorts(bindings, false, []), { kind: 'invalid' }, JSON.stringify(bindings));
  }
});
