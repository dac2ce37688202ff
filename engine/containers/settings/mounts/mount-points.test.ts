import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseBind } from './mount-points.ts';

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

const refused: [bind: string, message?: RegExp][] = [
  ...['', ':', '/a:', ':/b', '/a:b', '/a:/', '/a:/b:ro:more', 'data:rel'].map((bind): [string] => [bind]),
  ...['ro,rw', 'fast', 'ro,ro', 'z,Z', 'shared,slave', 'cached,consistent', 'ro,', 'RO'].map(
    (modes): [string, RegExp] => [`/a:/b:${modes}`, new RegExp(`^invalid mode: ${modes}$`)],
  ),
  ['data:/b:nocopy,nocopy', /^invalid mode: nocopy,nocopy$/],
  ['/a:/b:ro,nocopy', /'\/a:\/b:ro,nocopy': .* "bind": field VolumeOptions must not be specified$/],
  ['data:/b:shared', /'data:\/b:shared': .* "volume": field BindOptions must not be specified$/],
];
for (const [bind, message = /^invalid volume specification/] of refused) {
  test(`the bind "${bind}" is refused`, () => {
    assert.throws(() => parseBind(bind), { kind: 'invalid', message });
  });
}

test('one mode of each kind is accepted', () => {
  for (const bind of ['/a:/b:rw,z,rslave,cached', 'data:/b:ro,Z,nocopy,delegated']) parseBind(bind);
});
