import assert from 'node:assert/strict';
import { readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';

import { becomeTestHost, HOST_IP, TestDaemon } from '@gantry/testing/networks/network-host.ts';
import { Peer } from '@gantry/testing/networks/peer.ts';

import { withNetns } from '../../host/namespaces.ts';
import { addAddress, listAddresses } from '../../host/network/addresses.ts';
import { changeLink, createBridge, deleteLink, getLink, listLinks } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import { Nftables } from '../../host/network/nftables.ts';
import { checkBridgeName } from '../bridge/bridge-link.ts';
import { networkModeOf } from '../settings/mode.ts';
import { closeSandbox } from './sandbox.ts';

const machine = becomeTestHost();

test('a container has eth0 with address, MAC and default route, loopback, and no IPv6', async () => {
  await using daemon = await TestDaemon.start();

  const { netns, endpoint } = await daemon.attach('one');

  const inside = withNetns(netns, () => {
    using route = new Netlink();
    return {
      links: listLinks(route).map(({ name, mac, up, mtu }) => `${name} ${mac} ${mtu} ${up}`),
      addresses: listAddresses(route).map(({ ip, prefixLength }) => `${ip}/${prefixLength}`),
      routes: readFileSync('/proc/thread-self/net/route', 'utf8').split('\n').slice(1, -1).length,
      ipv6: readFileSync('/proc/sys/net/ipv6/conf/eth0/disable_ipv6', 'utf8').trim(),
      lowestPort: readFileSync('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8').trim(),
    };
  });
  assert.deepEqual(inside, {
    links: ['lo 00:00:00:00:00:00 65536 true', 'eth0 02:42:ac:11:00:02 1500 true'],
    addresses: ['127.0.0.1/8', '172.17.0.2/16'],
    routes: 2,
    ipv6: '1',
    lowestPort: '0',
  });
  assert.equal(endpoint.gateway, '172.17.0.1');
  assert.equal(endpoint.macAddress, '02:42:ac:11:00:02');
});

test('a MAC address of one’s own choice is used, and a group address refused', async () => {
  await using daemon = await TestDaemon.start();

  const { endpoint } = await daemon.attach('one', { mac: '0A-00-00-00-00-01' });

  assert.equal(endpoint.macAddress, '0a:00:00:00:00:01');
  await assert.rejects(daemon.attach('two', { mac: '01:00:00:00:00:01' }), { kind: 'invalid' });
});

test('two hundred containers have addresses of their own, and give them back', async () => {
  await using daemon = await TestDaemon.start();

  const leased = await Promise.all(Array.from({ length: 200 }, async (_, n) => await daemon.attach(`c${n}`)));

  const addresses = new Set(leased.map(({ endpoint }) => endpoint.ipAddress));
  assert.equal(addresses.size, 200);
  assert.ok(addresses.has('172.17.0.201'));
  for (let n = 0; n < 200; n += 1) closeSandbox(daemon, `c${n}`);
  assert.equal((await daemon.attach('next')).endpoint.ipAddress, '172.17.0.2');
});

test('a full network refuses the next container and changes nothing', async () => {
  await using daemon = await TestDaemon.start({ bip: '10.9.0.1/29' });
  for (let n = 0; n < 5; n += 1) await daemon.attach(`c${n}`);
  const portBindings = { '80/tcp': [{ HostPort: '8080' }] };

  await assert.rejects(daemon.attach('late', { portBindings }), {
    kind: 'failed',
    message: /no available IPv4 addresses/,
  });

  assert.deepEqual(daemon.networks.endpointsOf('late'), []);
  closeSandbox(daemon, 'c3');
  const { endpoint } = await daemon.attach('late', { portBindings });
  assert.equal(endpoint.ipAddress, '10.9.0.5');
});

test('a port of another container is refused in dockerd’s words, and nothing is kept', async () => {
  await using daemon = await TestDaemon.start();
  await daemon.attach('first', { portBindings: { '80/tcp': [{ HostPort: '8080' }] } });
  const portBindings = { '81/tcp': [{ HostPort: '8081' }], '80/tcp': [{ HostPort: '8080' }] };

  await assert.rejects(daemon.attach('second', { portBindings }), {
    kind: 'failed',
    message:
      /^driver failed programming external connectivity on endpoint second \([0-9a-f]{64}\): Bind for 0\.0\.0\.0:8080 failed: port is already allocated$/,
  });

  assert.deepEqual(daemon.networks.endpointsOf('second'), []);
  const { endpoint } = await daemon.attach('third', { portBindings: { '81/tcp': [{ HostPort: '8081' }] } });
  assert.equal(endpoint.ipAddress, '172.17.0.3');
});

test('a port of another program is refused, and other programs cannot take a published one', async () => {
  await using daemon = await TestDaemon.start();
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(7000, resolve));

  await assert.rejects(daemon.attach('web', { portBindings: { '80/tcp': [{ HostPort: '7000' }] } }), {
    kind: 'failed',
    message: /Error starting userland proxy: listen tcp4 0\.0\.0\.0:7000: bind: address already in use$/,
  });
  await assert.rejects(
    daemon.attach('web', { portBindings: { '80/tcp': [{ HostIp: '10.99.9.9', HostPort: '7001' }] } }),
    {
      message: /listen tcp4 10\.99\.9\.9:7001: bind: cannot assign requested address$/,
    },
  );
  await new Promise((resolve) => other.close(resolve));
  await daemon.attach('web', { portBindings: { '80/tcp': [{ HostPort: '7000' }], '53/udp': [{ HostPort: '7000' }] } });
  await using host = new Peer(machine.host);
  // A program on the host uses the port, so it cannot be published.
  const refused = await new Promise<string | undefined>((resolve) => {
    const late = createServer();
    late.once('error', (error: NodeJS.ErrnoException) => resolve(error.code));
    late.listen(7000, '0.0.0.0', () => late.close(() => resolve('bound')));
  });

  assert.equal(refused, 'EADDRINUSE');
  assert.equal(await host.tcp(HOST_IP, 7001), 'ECONNREFUSED');
});

test('a range takes its first free port, no port an ephemeral one', async () => {
  await using daemon = await TestDaemon.start();
  const range = { '80/tcp': [{ HostPort: '8000-8001' }] };

  const hostPorts = [
    (await daemon.attach('a', { portBindings: range })).endpoint.ports[0]?.hostPort,
    (await daemon.attach('b', { portBindings: range })).endpoint.ports[0]?.hostPort,
  ];
  const { endpoint } = await daemon.attach('c', { publishAll: true, exposed: ['80/tcp', '53/udp'] });

  assert.deepEqual(hostPorts, [8000, 8001]);
  await assert.rejects(daemon.attach('d', { portBindings: range }), /Bind for 0\.0\.0\.0:8001 failed/);
  assert.ok(endpoint.ports.every(({ hostPort }) => hostPort >= 32768 && hostPort <= 60999));
  assert.equal(endpoint.ports.length, 2);
});

test('connects and disconnects are told, and a detach is told once', async () => {
  await using daemon = await TestDaemon.start();
  await daemon.attach('a');
  await daemon.attachHost('b');
  await daemon.attach('c', { mode: networkModeOf('none') });
  for (const id of ['a', 'a', 'b', 'c']) closeSandbox(daemon, id);

  const told = daemon.told();

  assert.deepEqual(told, [
    'connect a bridge bridge',
    'connect b host host',
    'connect c none null',
    'disconnect a bridge bridge',
    'disconnect b host host',
    'disconnect c none null',
  ]);
});

test('network none has loopback only', async () => {
  await using daemon = await TestDaemon.start();

  const { netns } = await daemon.attach('c', { mode: networkModeOf('none') });

  const links = withNetns(netns, () => {
    using route = new Netlink();
    return listLinks(route).map(({ name, up }) => [name, up]);
  });
  assert.deepEqual(links, [['lo', true]]);
});

test('after a crash the living keep address and ports, the dead lose theirs', async () => {
  await using daemon = await TestDaemon.start();
  const live = await daemon.serve('live', { portBindings: { '80/tcp': [{ HostPort: '8080' }] } });
  await using _live = live.peer;
  await daemon.attach('dead', { portBindings: { '80/tcp': [{ HostPort: '8081' }] } });
  await using host = new Peer(machine.host);
  daemon.crash();
  const whileDown = await host.tcp('127.0.0.1', 8080);

  await daemon.startAgain(['live']);

  assert.equal(whileDown, 'live sees 172.17.0.1');
  assert.equal(await host.tcp('127.0.0.1', 8080), 'live sees 172.17.0.1');
  assert.deepEqual(
    daemon.networks.store.endpoints().map(({ containerId }) => containerId),
    ['live'],
  );
  await assert.rejects(daemon.attach('x', { portBindings: { '80/tcp': [{ HostPort: '8080' }] } }), /already allocated/);
  const { endpoint } = await daemon.attach('y', { portBindings: { '80/tcp': [{ HostPort: '8081' }] } });
  assert.equal(endpoint.ipAddress, '172.17.0.3');
});

test('ids, subnet and creation time stay over a restart', async () => {
  await using daemon = await TestDaemon.start();
  const before = daemon.networks.list();
  daemon.crash();

  await daemon.startAgain([]);

  assert.deepEqual(daemon.networks.list().map(plain), before.map(plain));
});

test('a removed bridge and removed rules come back with their containers', async () => {
  await using daemon = await TestDaemon.start();
  const live = await daemon.serve('live', { portBindings: { '80/tcp': [{ HostPort: '8080' }] } });
  await using _live = live.peer;
  await using host = new Peer(machine.host);
  daemon.crash();
  {
    using route = new Netlink();
    route.apply(deleteLink(getLink(route, 'gantry0').index));
    using nft = new Nftables();
    nft.run('flush ruleset');
  }

  await daemon.startAgain(['live']);

  assert.equal(await host.tcp('127.0.0.1', 8080), 'live sees 172.17.0.1');
});

test('flushed rules are written again by the next start', async () => {
  await using daemon = await TestDaemon.start();
  const first = await daemon.serve('first', { portBindings: { '80/tcp': [{ HostPort: '8080' }] } });
  await using _first = first.peer;
  await using host = new Peer(machine.host);
  {
    using nft = new Nftables();
    nft.run('flush ruleset');
  }
  closeSandbox(daemon, 'nobody');

  const second = await daemon.serve('second', { portBindings: { '80/tcp': [{ HostPort: '8081' }] } });
  await using _second = second.peer;

  assert.equal(await host.tcp('127.0.0.1', 8080), 'first sees 172.17.0.1');
  assert.equal(await host.tcp('127.0.0.1', 8081), 'second sees 172.17.0.1');
});

test('two daemons with different bridges leave each other alone', async () => {
  await using one = await TestDaemon.start({ bridge: 'gantry1' });
  await using two = await TestDaemon.start({ bridge: 'gantry2' });
  const a = await one.serve('a', { portBindings: { '80/tcp': [{ HostPort: '8080' }] } });
  const b = await two.serve('b', { portBindings: { '80/tcp': [{ HostPort: '8081' }] } });
  await using _a = a.peer;
  await using _b = b.peer;
  await using host = new Peer(machine.host);

  assert.equal(b.endpoint.ipAddress, '172.18.0.2');
  assert.equal(await host.tcp('127.0.0.1', 8080), 'a sees 172.17.0.1');
  assert.equal(await host.tcp('127.0.0.1', 8081), 'b sees 172.18.0.1');
  // From a neighbouring network, published ports can be reached, others cannot.
  assert.match(await a.peer.tcp(HOST_IP, 8081), /^b sees/);
  assert.equal(await a.peer.tcp(b.endpoint.ipAddress, 80, 300), 'ETIMEDOUT');
});

test('the bridge of another daemon is refused, unless its data root is gone', async () => {
  await using one = await TestDaemon.start({ bridge: 'gantry1' });
  await using two = new TestDaemon({ bridge: 'gantry1' });

  await assert.rejects(two.networks.start(), { kind: 'conflict', message: /gantry1 belongs to the daemon of/ });

  rmSync(join(one.directory, 'gantry.db'));
  await two.networks.start();
  assert.equal((await two.attach('x')).endpoint.ipAddress, '172.17.0.2');
});

test('a foreign bridge is used with its address, and stays', async () => {
  using route = new Netlink();
  route.apply(createBridge({ name: 'br7', mac: '02:42:00:00:00:07' }));
  const { index } = getLink(route, 'br7');
  route.apply(changeLink(index, { up: true }), addAddress({ link: index, ip: '10.7.0.9', prefixLength: 24 }));
  {
    await using daemon = await TestDaemon.start({ bridge: 'br7' });

    const { endpoint } = await daemon.attach('x');

    assert.deepEqual([endpoint.ipAddress, endpoint.gateway], ['10.7.0.1', '10.7.0.9']);
  }
  assert.equal(getLink(route, 'br7').alias, '');
  route.apply(deleteLink(index));
});

test('the bridge does not move while containers are on it', async () => {
  await using daemon = await TestDaemon.start();
  await daemon.attach('live');
  daemon.crash();

  await assert.rejects(daemon.startAgain(['live'], { bip: '10.5.0.1/24' }), { kind: 'conflict', message: /stop them/ });
  await daemon.startAgain([], { bip: '10.5.0.1/24' });

  using route = new Netlink();
  const { index } = getLink(route, 'gantry0');
  assert.deepEqual(
    listAddresses(route).filter(({ link }) => link === index),
    [{ link: index, ip: '10.5.0.1', prefixLength: 24 }],
  );
});

test('without a bridge there is no network of that name', async () => {
  await using daemon = await TestDaemon.start({ bridge: 'none' });

  await assert.rejects(daemon.attach('x'), /is in no network/);
  await assert.rejects(daemon.attach('x', { mode: networkModeOf('nope') }), { message: 'network nope not found' });

  assert.deepEqual(
    daemon.networks.list().map(({ name }) => name),
    ['none', 'host'],
  );
});

test('names that no link can have are refused', () => {
  for (const bridge of ['a b', 'sixteen-letters-', '../x', 'x"', '-x', '']) {
    assert.throws(() => checkBridgeName(bridge), { kind: 'invalid' }, bridge);
  }
});

test('removal leaves no link, table or rule behind', async () => {
  {
    await using daemon = await TestDaemon.start();
    await daemon.attach('x', { portBindings: { '80/tcp': [{ HostPort: '8080' }] } });
  }

  using route = new Netlink();
  using nft = new Nftables();
  assert.ok(!listLinks(route).some(({ name }) => name === 'gantry0'));
  assert.deepEqual(
    (nft.list('list tables') ?? []).flatMap(({ table }) => (table === undefined ? [] : [table.name])),
    [],
  );
});

test('a lease from the stock takes less of the daemon’s time than one without', async () => {
  await using daemon = await TestDaemon.start();
  // Processor time of this thread, independent of other programs.
  const took: Record<'stocked' | 'empty', number[]> = { stocked: [], empty: [] };
  for (let n = 0; n < 80; n += 1) {
    if (n % 2 === 0) await daemon.stocked();
    const before = process.threadCpuUsage();
    await daemon.attach(`c${n}`, { portBindings: { '80/tcp': [{ HostPort: String(9000 + n) }] } });
    const { user, system } = process.threadCpuUsage(before);
    took[n % 2 === 0 ? 'stocked' : 'empty'].push((user + system) / 1000);
  }

  const [stocked, empty] = [took.stocked, took.empty].map((each) => each.toSorted((a, b) => a - b)[20]!);

  assert.ok(stocked! < 0.75 * empty!, `${stocked} ms and ${empty} ms`);
});

function plain(network: { id: string; subnet?: string; createdAt: Temporal.Instant }): string {
  return `${network.id} ${network.subnet ?? ''} ${network.createdAt.toString()}`;
}
