import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parsePluginConfig } from './plugin-config.ts';

test('keys of a configuration count in any case, and null is a missing value', () => {
  const text = JSON.stringify({
    description: 'written by hand',
    entrypoint: ['/run'],
    network: { type: 'host' },
    interface: { types: ['docker.volumedriver/1.0'], socket: 'plugin.sock' },
    env: [{ name: 'DEBUG', settable: ['value'], value: '0' }],
    mounts: null,
  });

  const { Entrypoint, Network, Interface, Env, Mounts } = parsePluginConfig(text);

  assert.deepEqual([Entrypoint, Network, Mounts], [['/run'], { Type: 'host' }, null]);
  assert.deepEqual(Interface, { Types: ['docker.volumedriver/1.0'], Socket: 'plugin.sock' });
  assert.deepEqual(Env, [{ Name: 'DEBUG', Settable: ['value'], Value: '0' }]);
});

for (const text of ['', '[]', 'null', '{}', '{"entrypoint":[],"interface":{"socket":"x"}}']) {
  test(`${JSON.stringify(text)} is no configuration of a plugin`, () => {
    assert.throws(() => parsePluginConfig(text), { kind: 'failed' });
  });
}
