import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Database } from '../db/database.ts';
import { NO_PLACE, type Endpoint } from './endpoints/endpoint.ts';
import { NetworkStore } from './store.ts';

const endpoint: Endpoint = {
  ...NO_PLACE,
  id: 'e1',
  sandboxId: 's1',
  containerId: 'c1',
  networkId: 'n1',
  networkName: 'bridge',
  link: 'veth1',
  ipAddress: '172.17.0.2',
  prefixLength: 16,
  gateway: '172.17.0.1',
  macAddress: '02:42:ac:11:00:02',
  ports: [{ containerPort: 80, protocol: 'tcp', hostIp: '0.0.0.0', hostPort: 8080 }],
};

/** The record of version 1. */
const ATTACHMENTS = `
  CREATE TABLE networks (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, driver TEXT NOT NULL,
    created_ns INTEGER NOT NULL, bridge TEXT, subnet TEXT, gateway TEXT) STRICT;
  CREATE TABLE attachments (container_id TEXT NOT NULL, network_id TEXT NOT NULL REFERENCES networks (id),
    endpoint_id TEXT NOT NULL, sandbox_id TEXT NOT NULL, link TEXT NOT NULL, ip TEXT, prefix_length INTEGER NOT NULL,
    gateway TEXT NOT NULL, mac TEXT NOT NULL, ports TEXT NOT NULL, PRIMARY KEY (container_id, network_id)) STRICT;
  INSERT INTO networks VALUES ('n1', 'bridge', 'bridge', 5, 'gantry0', '172.17.0.0/16', '172.17.0.1');
  INSERT INTO attachments VALUES ('c1', 'n1', 'e1', 's1', 'veth1', '172.17.0.2', 16, '172.17.0.1',
    '02:42:ac:11:00:02', '[{"containerPort":80,"protocol":"tcp","hostIp":"0.0.0.0","hostPort":8080}]');`;

function withNetworks(db: Database): NetworkStore {
  const store = new NetworkStore(db);
  for (const [id, name] of [
    ['n1', 'bridge'],
    ['n2', 'other'],
  ] as const) {
    store.saveNetwork({ id, name, driver: 'bridge', createdAt: Temporal.Instant.from('2026-01-01T00:00:00Z') });
  }
  return store;
}

test('containers that run over an upgrade keep their endpoints', () => {
  using db = new Database(':memory:');
  db.migrate('networks', [ATTACHMENTS]);

  assert.deepEqual(new NetworkStore(db).endpoints(), [endpoint]);
});

test('a container has an endpoint in each of its networks, in the order of their joining', () => {
  using db = new Database(':memory:');
  const store = withNetworks(db);
  const second = { ...endpoint, id: 'e2', networkId: 'n2', networkName: 'other', ipAddress: '10.0.0.2' };
  store.insertEndpoint(endpoint);
  store.insertEndpoint(second);

  assert.deepEqual(store.endpointsOf('c1'), [endpoint, second]);
  assert.equal(store.endpointsOf('c1'), store.endpointsOf('c1'));
  assert.deepEqual(new NetworkStore(db).endpointsOf('c1'), [endpoint, second]);
  store.deleteEndpoint(endpoint);
  assert.deepEqual(store.endpointsOf('c1'), [second]);
  assert.throws(() => store.insertEndpoint({ ...second, id: 'e3' }), /has the place of/);
});

test('a rolled back change is undone in memory and in the table', () => {
  using db = new Database(':memory:');
  const store = withNetworks(db);
  store.insertEndpoint(endpoint);

  assert.throws(() =>
    db.transaction(() => {
      store.deleteEndpoint(endpoint);
      store.insertEndpoint({ ...endpoint, id: 'e9' });
      throw new Error('stop');
    }),
  );

  assert.deepEqual(store.endpointsOf('c1'), [endpoint]);
  assert.deepEqual(new NetworkStore(db).endpointsOf('c1'), [endpoint]);
});
