import assert from 'node:assert/strict';
import { test } from 'node:test';

import { becomeTestHost, TestDaemon } from '@gantry/testing/networks/network-host.ts';

import { parseFilters } from '../http/values/filters.ts';
import { closeSandbox } from './endpoints/sandbox.ts';
import { listNetworks, NETWORK_FILTERS } from './list.ts';
import { networkSettings, presentNetwork, type Member } from './present.ts';
import { networkModeOf } from './settings/mode.ts';

becomeTestHost();

function list(daemon: TestDaemon, filters: unknown): string[] {
  return listNetworks(daemon, parseFilters(JSON.stringify(filters), NETWORK_FILTERS), undefined).map(
    ({ name }) => name,
  );
}

test('filters choose among the networks as with dockerd', async () => {
  await using daemon = await TestDaemon.start();
  const { id } = daemon.networks.predefined('host');
  const table: readonly [filters: unknown, names: string[]][] = [
    [{}, ['none', 'host', 'bridge']],
    [{ type: ['builtin'] }, ['none', 'host', 'bridge']],
    [{ type: { custom: true } }, []],
    [{ driver: ['host'] }, ['host']],
    [{ driver: ['bridge', 'host'] }, ['host', 'bridge']],
    [{ name: ['o'] }, ['none', 'host']],
    [{ name: ['^host$'] }, ['host']],
    [{ name: ['(?i)^BRI', '('] }, ['bridge']],
    [{ id: [`^${id.slice(0, 20)}`] }, ['host']],
    [{ scope: ['local'] }, ['none', 'host', 'bridge']],
    [{ scope: ['swarm'] }, []],
    [{ dangling: ['true'] }, []],
    [{ dangling: ['0'] }, ['none', 'host', 'bridge']],
    [{ name: ['bridge', 'none'], driver: ['null'] }, ['none']],
    [{ id: [id.slice(0, 20)] }, ['host']],
    [{ label: ['a'] }, []],
  ];

  for (const [filters, names] of table) assert.deepEqual(list(daemon, filters), names, JSON.stringify(filters));
  assert.throws(() => list(daemon, { type: ['x'] }), { kind: 'invalid', message: "invalid filter: 'type'='x'" });
  assert.throws(() => list(daemon, { foo: ['x'] }), { kind: 'invalid' });
});

test('a network is found by id, name and prefix of its id, not by part of its name', async () => {
  await using daemon = await TestDaemon.start();
  const { id } = daemon.networks.predefined('bridge');

  const found = [id, 'bridge', id.slice(0, 12)].map((ref) => daemon.networks.find(ref).id);

  assert.deepEqual(found, [id, id, id]);
  for (const ref of ['bri', '', 'nope']) {
    assert.throws(() => daemon.networks.find(ref), { kind: 'notFound', message: `network ${ref} not found` });
  }
});

test('a network shows its range, options and containers', async () => {
  await using daemon = await TestDaemon.start();
  const { endpoint } = await daemon.attach('web');
  await daemon.attachHost('hst');

  const bridge = presentNetwork(daemon.networks, daemon.networks.find('bridge'));
  const host = presentNetwork(daemon.networks, daemon.networks.find('host'));

  assert.deepEqual(bridge.IPAM.Config, [{ Subnet: '172.17.0.0/16', Gateway: '172.17.0.1' }]);
  assert.deepEqual(bridge.Containers, {
    web: {
      Name: 'web',
      EndpointID: endpoint.id,
      MacAddress: '02:42:ac:11:00:02',
      IPv4Address: '172.17.0.2/16',
      IPv6Address: '',
    },
  });
  for (const prefix of ['com.docker.network', 'com.engine.network']) {
    assert.equal(bridge.Options[`${prefix}.bridge.name`], 'gantry0');
    assert.match(bridge.Options[`${prefix}.driver.mtu`] ?? '', /^\d+$/);
  }
  assert.deepEqual(Object.keys(host.Containers), ['hst']);
  assert.deepEqual(host.Options, {});
});

test('a running container shows its endpoint and all of its exposed ports', async () => {
  await using daemon = await TestDaemon.start();
  const portBindings = { '80/tcp': [{ HostPort: '8080' }, { HostIp: '127.0.0.1', HostPort: '8081' }] };
  const { endpoint } = await daemon.attach('web', { portBindings });

  const shown = networkSettings(member(daemon, 'web', { exposed: ['7777/tcp', '80/tcp'], pid: 42 }));

  assert.deepEqual(shown.Ports, {
    '7777/tcp': null,
    '80/tcp': [
      { HostIp: '0.0.0.0', HostPort: '8080' },
      { HostIp: '127.0.0.1', HostPort: '8081' },
    ],
  });
  assert.equal(shown.SandboxKey, '/proc/42/ns/net');
  assert.equal(shown.IPAddress, '172.17.0.2');
  assert.equal(shown.EndpointID, endpoint.id);
  assert.equal(shown.Networks['bridge']?.IPPrefixLen, 16);
});

test('a stopped container shows the name of its network and no address', async () => {
  await using daemon = await TestDaemon.start();
  await daemon.attach('web');
  closeSandbox(daemon, 'web');

  const networkId = daemon.networks.predefined('bridge').id;
  const shown = networkSettings(
    member(daemon, 'web', { attachments: { bridge: attached(networkId) }, exposed: ['80/tcp'] }),
  );

  assert.deepEqual(shown.Ports, {});
  assert.equal(shown.SandboxKey, '');
  assert.equal(shown.Networks['bridge']?.IPAddress, '');
  assert.equal(shown.Networks['bridge']?.NetworkID, networkId);
});

test('a container in the network of the host has an endpoint there, in that of another container none', async () => {
  await using daemon = await TestDaemon.start();
  await daemon.attachHost('hst');

  const host = networkSettings(member(daemon, 'hst', { mode: networkModeOf('host'), exposed: ['7/tcp'], pid: 1 }));
  const joined = networkSettings(member(daemon, 'con', { mode: networkModeOf('container:web'), pid: 2 }));

  assert.deepEqual([Object.keys(host.Networks), host.EndpointID, host.Ports], [['host'], '', {}]);
  assert.notEqual(host.Networks['host']?.EndpointID, '');
  assert.deepEqual([joined.Networks, joined.SandboxKey], [{}, '']);
});

function attached(networkId: string): Member['attachments'][string] {
  return { ipam: null, links: null, aliases: null, networkId };
}

function member({ networks }: TestDaemon, containerId: string, fields: Partial<Member>): Member {
  const endpoints = networks.endpointsOf(containerId);
  return {
    endpoints,
    attachments: Object.fromEntries(endpoints.map(({ networkName }) => [networkName, attached('')])),
    isNew: false,
    mode: networkModeOf('default'),
    isDisabled: false,
    exposed: [],
    pid: undefined,
    ...fields,
  };
}
