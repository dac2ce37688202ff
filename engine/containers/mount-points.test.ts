import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { MountSpec } from './host-config-schema.ts';
import { parseBind, parseMount } from './mount-points.ts';

test('a host path is a private bind', () => {
  const { type, source, destination, writable, propagation } = parseBind('/a//b/:/c/');

  assert.deepEqual(
    { type, source, destination, writable, propagation },
    { type: 'bind', source: '/a/b/', destination: '/c', writable: true, propagation: 'rprivate' },
  );
});

test('modes say how it is mounted', () => {
  const { writable, propagation, mode } = parseBind('/a:/b:ro,rslave');

  assert.deepEqual({ writable, propagation, mode }, { writable: false, propagation: 'rslave', mode: 'ro,rslave' });
});

test('a name is a volume, filled from the image unless nocopy is said', () => {
  assert.deepEqual(
    [parseBind('data:/d'), parseBind('data:/d:nocopy')].map(({ type, name, copyUp }) => [type, name, copyUp]),
    [
      ['volume', 'data', true],
      ['volume', 'data', false],
    ],
  );
});

test('a path alone is a volume without a name', () => {
  const { type, anonymous, destination } = parseBind('/d');

  assert.deepEqual({ type, anonymous, destination }, { type: 'volume', anonymous: true, destination: '/d' });
});

for (const bind of ['', ':', '/a:', ':/b', '/a:b', '/a:/', '/a:/b:ro,rw', '/a:/b:fast', '/a:/b:ro:more', 'data:rel']) {
  test(`the bind "${bind}" is refused`, () => {
    assert.throws(() => parseBind(bind), { kind: 'invalid' });
  });
}

test('a bind of Mounts is recursive unless it says otherwise', () => {
  const spec = { Type: 'bind', Source: '/', Target: '/m' };

  assert.equal(parseMount(spec).recursive, undefined);
  assert.equal(parseMount({ ...spec, BindOptions: { NonRecursive: true } }).recursive, false);
});

const refusedMounts: [MountSpec, string][] = [
  [{ Target: '/m' }, 'invalid mount config for type "": mount type unknown'],
  [{ Type: 'volume' }, 'invalid mount config for type "volume": field Target must not be empty'],
  [
    { Type: 'tmpfs', Target: 'm' },
    `invalid mount config for type "tmpfs": invalid mount path: 'm' mount path must be absolute`,
  ],
  [{ Type: 'bind', Target: '/m' }, 'invalid mount config for type "bind": field Source must not be empty'],
  [
    { Type: 'tmpfs', Target: '/m', VolumeOptions: {} },
    'invalid mount config for type "tmpfs": field VolumeOptions must not be specified',
  ],
  [
    { Type: 'bind', Source: '/', Target: '/m', TmpfsOptions: {} },
    'invalid mount config for type "bind": field TmpfsOptions must not be specified',
  ],
  [
    { Type: 'tmpfs', Target: '/m', TmpfsOptions: { SizeBytes: -1 } },
    'invalid mount config for type "tmpfs": the size of a tmpfs must not be negative',
  ],
];

for (const [spec, message] of refusedMounts) {
  test(`the mount ${JSON.stringify(spec)} is refused`, () => {
    assert.throws(() => parseMount(spec), { kind: 'invalid', message });
  });
}
