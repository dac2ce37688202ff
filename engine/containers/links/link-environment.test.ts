import assert from 'node:assert/strict';
import { test } from 'node:test';

import { linkVariables } from './link-environment.ts';

const link = { name: 'web', alias: 'my-db.x', ipAddress: '10.0.0.2', ports: [], environment: [] };

test('a port is told as a whole and in its parts, the lowest once more', () => {
  const variables = linkVariables({ ...link, ports: ['5432/tcp', '53/udp'] });

  assert.deepEqual(variables, [
    'MY_DB.X_PORT=udp://10.0.0.2:53',
    'MY_DB.X_PORT_53_UDP=udp://10.0.0.2:53',
    'MY_DB.X_PORT_53_UDP_ADDR=10.0.0.2',
    'MY_DB.X_PORT_53_UDP_PORT=53',
    'MY_DB.X_PORT_53_UDP_PROTO=udp',
    'MY_DB.X_PORT_5432_TCP=tcp://10.0.0.2:5432',
    'MY_DB.X_PORT_5432_TCP_ADDR=10.0.0.2',
    'MY_DB.X_PORT_5432_TCP_PORT=5432',
    'MY_DB.X_PORT_5432_TCP_PROTO=tcp',
    'MY_DB.X_NAME=/web/my-db.x',
  ]);
});

// Variables of dockerd 20.10 for these ports.
test('three or more ports that follow each other are told as a run as well', () => {
  const ports = ['90/tcp', '91/tcp', '92/tcp', '92/udp', '93/udp', '200/tcp', '201/tcp', '53/tcp', '53/udp'];

  const variables = linkVariables({ ...link, ports });

  assert.deepEqual(variables.slice(0, 7), [
    'MY_DB.X_PORT=tcp://10.0.0.2:53',
    'MY_DB.X_PORT_90_TCP_START=tcp://10.0.0.2:90',
    'MY_DB.X_PORT_90_TCP_ADDR=10.0.0.2',
    'MY_DB.X_PORT_90_TCP_PROTO=tcp',
    'MY_DB.X_PORT_90_TCP_PORT_START=90',
    'MY_DB.X_PORT_90_UDP_END=udp://10.0.0.2:93',
    'MY_DB.X_PORT_90_UDP_PORT_END=93',
  ]);
  assert.equal(variables.filter((variable) => variable.includes('_START=')).length, 2);
});

test("the other container's variables are told, but for those of its image's system", () => {
  const environment = ['PATH=/bin', 'HOME=/root', 'NOVALUE', 'X=1=2', 'EMPTY='];

  assert.deepEqual(linkVariables({ ...link, environment }), [
    'MY_DB.X_NAME=/web/my-db.x',
    'MY_DB.X_ENV_X=1=2',
    'MY_DB.X_ENV_EMPTY=',
  ]);
});
