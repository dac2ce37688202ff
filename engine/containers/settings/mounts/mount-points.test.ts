import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseBind, parseMount } from './mount-points.ts';

const DATA = '/var/lib/gantry';

test('a host path is a private bind', () => {
  const { type, source, destination, writable, propagation } = parseBind('/a//b/:/c/', DATA);

  assert.deepEqual(
    { type, source, destination, writable, propagation },
    { type: 'bind', source: '/a/b/', destination: '/c', writable: true, propagation: 'rprivate' },
  );
});

test('modes say how it is mounted', () => {
  const { writable, propagation, mode } = parseBind('/a:/b:ro,rslave', DATA);

  assert.deepEqual({ writable, propagation, mode }, { writable: false, propagation: 'rslave', mode: 'ro,rslave' });
});

test('a name is a volume, filled from the image unless nocopy is said', () => {
  assert.deepEqual(
    [parseBind('data:/d', DATA), parseBind('data:/d:nocopy', DATA)].map(({ type, name, copyUp }) => [
      type,
      name,
      copyUp,
    ]),
    [
      ['volume', 'data', true],
      ['volume', 'data', false],
    ],
  );
});

test('a path alone is a volume without a name', () => {
  const { type, anonymous, destination } = parseBind('/d', DATA);

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
    assert.throws(() => parseBind(bind, DATA), { kind: 'invalid', message });
  });
}

test('one mode of each kind is accepted', () => {
  for (const bind of ['/a:/b:rw,z,rslave,cached', 'data:/b:ro,Z,nocopy,delegated']) parseBind(bind, DATA);
});

test('a bind that touches the data of the engine is a slave of the host', async (t) => {
  const cases: [source: string, propagation: string, isSlaveByDefault: boolean | undefined][] = [
    ['/', 'rslave', true],
    ['/var/lib', 'rslave', true],
    ['/var/lib/gantry', 'rslave', true],
    ['/var/lib/gantry/volumes/', 'rslave', true],
    ['/var/lib/gantry-2', 'rprivate', undefined],
    ['/var/li', 'rprivate', undefined],
  ];
  for (const [source, propagation, isSlaveByDefault] of cases) {
    await t.test(source, () => {
      const bind = parseBind(`${source}:/b`, DATA);

      assert.deepEqual([bind.propagation, bind.isSlaveByDefault], [propagation, isSlaveByDefault]);
    });
  }
  await t.test('a propagation of the client counts', () => {
    const { propagation, isSlaveByDefault } = parseBind('/:/b:rshared', DATA);

    assert.deepEqual([propagation, isSlaveByDefault], ['rshared', undefined]);
  });
  for (const mode of ['private', 'rprivate', 'slave', 'shared']) {
    await t.test(`${mode} is refused`, () => {
      const mount = { Type: 'bind', Source: '/', Target: '/b', BindOptions: { Propagation: mode } };

      assert.throws(() => parseBind(`/:/b:${mode}`, DATA), {
        kind: 'invalid',
        message: /must use either propagation mode/,
      });
      assert.throws(() => parseMount(mount, DATA), { kind: 'invalid', message: /must use either propagation mode/ });
    });
  }
});
