import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { NetworkingConfig } from '../schema.ts';
import { checkEndpoints } from './endpoints.ts';

const severalNetworks = 'Container cannot be connected to network endpoints: bridge, none';

const refused: [NetworkingConfig['EndpointsConfig'], string][] = [
  [{ none: {}, bridge: {} }, severalNetworks],
  [{ none: null }, severalNetworks],
  [
    { bridge: { IPAMConfig: { IPv4Address: '172.17.0.9' } } },
    'user specified IP address is supported on user defined networks only',
  ],
  [{ bridge: { Aliases: ['x'] } }, 'network-scoped alias is supported only for containers in user defined networks'],
];

for (const [EndpointsConfig, message] of refused) {
  test(`the endpoints ${JSON.stringify(EndpointsConfig)} are refused on bridge`, () => {
    assert.throws(() => checkEndpoints({ EndpointsConfig }, 'default'), { kind: 'invalid', message });
  });
}

test('an endpoint without wishes is fine, and what is passed over is said', () => {
  assert.deepEqual(checkEndpoints({ EndpointsConfig: { bridge: {} } }, 'bridge'), []);
  assert.deepEqual(checkEndpoints({}, 'host'), []);

  const bridge = { IPAMConfig: { LinkLocalIPs: ['169.254.1.1'] }, Links: ['a:b'] };
  assert.equal(checkEndpoints({ EndpointsConfig: { bridge } }, 'default').length, 2);
});
