import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { after, test } from 'node:test';

import { becomeTestHost, HOST_IP, TestDaemon, type Attached } from '@gantry/testing/networks/network-host.ts';
import { Peer } from '@gantry/testing/networks/peer.ts';

import { closeSandbox } from '../../endpoints/sandbox.ts';

const HOST_SIX = 'fd00:1::2';
const BRIDGED_FILTERING = '/proc/sys/net/bridge/bridge-nf-call-iptables';

const machine = becomeTestHost();
const host = new Peer(machine.host);
const outside = new Peer(machine.outside);

/** IPv6 for the machine and its neighbour. */
function giveSix(): void {
  execFileSync('ip', ['address', 'add', `${HOST_SIX}/64`, 'dev', 'eth0', 'nodad']);
  const words = ['--net=/proc/self/fd/3', 'ip', 'address', 'add', 'fd00:1::1/64', 'dev', 'eth0', 'nodad'];
  execFileSync('nsenter', words, { stdio: ['ignore', 'ignore', 'inherit', machine.outside] });
}

after(async () => {
  await host[Symbol.asyncDispose]();
  await outside[Symbol.asyncDispose]();
});

test('a published TCP port answers by 127.0.0.1, by an address of the host, and from outside', async () => {
  await using daemon = await TestDaemon.start();
  const { peer } = await daemon.serve('web', { portBindings: { '80/tcp': [{ HostIp: '', HostPort: '8080' }] } });
  await using _web = peer;

  const answers = await Promise.all([host.tcp('127.0.0.1', 8080), host.tcp(HOST_IP, 8080), outside.tcp(HOST_IP, 8080)]);

  // Only the way over loopback has to hide the source address.
  assert.deepEqual(answers, ['web sees 172.17.0.1', `web sees ${HOST_IP}`, 'web sees 192.0.2.1']);
});

// With br_netfilter the kernel translates frames inside the bridge; without it, on their way through the host.
for (const bridgedFiltering of ['0', '1']) {
  test(`a published port answers its own container and the neighbours, bridge-nf-call-iptables=${bridgedFiltering}`, async () => {
    if (existsSync(BRIDGED_FILTERING)) writeFileSync(BRIDGED_FILTERING, bridgedFiltering);
    await using daemon = await TestDaemon.start();
    const web = await daemon.serve('web', { portBindings: { '80/tcp': [{ HostPort: '8080' }] } });
    const other = await daemon.serve('other');
    await using _web = web.peer;
    await using _other = other.peer;

    const answers = await Promise.all([
      other.peer.tcp(HOST_IP, 8080),
      other.peer.tcp('172.17.0.1', 8080),
      web.peer.tcp(HOST_IP, 8080),
      other.peer.tcp(web.endpoint.ipAddress, 80),
    ]);

    assert.deepEqual(answers, [
      'web sees 172.17.0.1',
      'web sees 172.17.0.1',
      'web sees 172.17.0.1',
      'web sees 172.17.0.3',
    ]);
  });
}

test('a published UDP port answers the host and outside', async () => {
  await using daemon = await TestDaemon.start();
  const { peer } = await daemon.serve('dns', { portBindings: { '53/udp': [{ HostPort: '5353' }] } });
  await using _dns = peer;

  const answers = await Promise.all([host.udp('127.0.0.1', 5353), host.udp(HOST_IP, 5353), outside.udp(HOST_IP, 5353)]);

  assert.deepEqual(answers, ['dns sees 172.17.0.1', `dns sees ${HOST_IP}`, 'dns sees 192.0.2.1']);
});

test('a UDP client that keeps its port reaches the new owner of a published port', async () => {
  await using daemon = await TestDaemon.start();
  const portBindings = { '53/udp': [{ HostPort: '5353' }] };
  const first = await daemon.serve('first', { portBindings });
  await using _first = first.peer;
  await using _keep = (await daemon.serve('keep')).peer;
  await outside.udp(HOST_IP, 5353, { from: 40_000 });
  closeSandbox(daemon, 'first');
  const taken = await daemon.serve('taken');
  await using _taken = taken.peer;
  const second = await daemon.serve('second', { portBindings });
  await using _second = second.peer;

  const answer = await outside.udp(HOST_IP, 5353, { from: 40_000 });

  assert.equal(answer, 'second sees 192.0.2.1');
});

/** A client, the address that it sends to, and the address that the port is published on. */
const flows: [name: string, client: () => Peer, to: string, HostIp: string][] = [
  ['a client outside', () => outside, HOST_IP, ''],
  ['a client outside, to a port on one address', () => outside, HOST_IP, HOST_IP],
  ['a client of this machine', () => host, HOST_IP, ''],
  ['a client of this machine, by 127.0.0.1', () => host, '127.0.0.1', ''],
  ['a client of this machine, by 127.0.0.1 alone', () => host, '127.0.0.1', '127.0.0.1'],
  ['a client outside, by IPv6', () => outside, HOST_SIX, ''],
  ['a client outside, by IPv6 to a port on one address', () => outside, HOST_SIX, HOST_SIX],
  ['a client of this machine, by IPv6', () => host, HOST_SIX, '::'],
];

test('a client that sends since before a UDP port was published is answered, also after replacement and move', async (t) => {
  giveSix();
  await using daemon = await TestDaemon.start({ fixedCidrV6: 'fd00:99::/64' });
  // Without a container no rule tracks flows.
  await using neighbour = (await daemon.serve('neighbour')).peer;
  const bridges = daemon.networks.bridges();
  let from = 41_000;

  for (const [name, client, to, HostIp] of [...flows, ['a neighbour', () => neighbour, HOST_IP, ''] as const]) {
    await t.test(name, async () => {
      from += 1;
      const portBindings = { '53/udp': [{ HostIp, HostPort: '5353' }] };
      const asked = async (timeoutMs?: number): Promise<string> => {
        const answer = await client().udp(to, 5353, { from, ...(timeoutMs !== undefined && { timeoutMs }) });
        return answer.split(' ')[0]!;
      };
      const serve = async (id: string): Promise<Attached & { peer: Peer }> => {
        const served = await daemon.serve(id, id === 'third' ? {} : { portBindings });
        await served.peer.serveUdp(53, id, served.endpoint.ipv6!.ipAddress);
        return served;
      };

      await using served = new AsyncDisposableStack();
      const before = await asked(100);
      served.use((await serve('first')).peer);
      const answers = [await asked()];
      closeSandbox(daemon, 'first');
      const between = await asked(100);
      const second = await serve('second');
      served.use(second.peer);
      answers.push(await asked());
      const third = await serve('third');
      served.use(third.peer);
      bridges.movePorts(second.endpoint, third.endpoint, second.endpoint.ports);
      answers.push(await asked());
      bridges.movePorts(third.endpoint, second.endpoint, second.endpoint.ports);
      closeSandbox(daemon, 'second');
      closeSandbox(daemon, 'third');

      assert.deepEqual([before, between, ...answers], ['ETIMEDOUT', 'ETIMEDOUT', 'first', 'second', 'third']);
    });
  }
});

test('a client that sent while another program had flushed the rules is answered when they are back', async () => {
  await using daemon = await TestDaemon.start();
  const { peer } = await daemon.serve('web', { portBindings: { '53/udp': [{ HostPort: '5353' }] } });
  await using _web = peer;
  const tracking = 'add table ip t; add chain ip t in { type filter hook input priority 0; ct state new accept; }';
  const send = `const socket = require('node:dgram').createSocket('udp4');
    socket.bind(42000, () => socket.send('who?', 5353, '${HOST_IP}', () => socket.close()));`;
  const script = `nft 'flush ruleset; ${tracking}'; '${process.execPath}' -e "${send}"; nft 'delete table ip t'`;
  execFileSync('sh', ['-c', script]); // the daemon notices afterwards: both are in this thread

  await daemon.networks.bridges().admit(daemon.networks.predefined('bridge').id);

  assert.equal(await host.udp(HOST_IP, 5353, { from: 42_000 }), `web sees ${HOST_IP}`);
});

test('the publishing of a UDP port leaves the flows of containers to that port of other machines alone', async () => {
  await using daemon = await TestDaemon.start();
  await using client = (await daemon.serve('client')).peer;
  await outside.serveUdp(5353, 'internet');
  await client.udp('192.0.2.1', 5353, { from: 43_000 });
  const tracked = (): string[] => {
    const lines = readFileSync('/proc/self/net/nf_conntrack', 'utf8').split('\n');
    return lines.flatMap((line) => (line.includes('sport=43000') ? [line.replace(/ \d+ src/, ' src')] : []));
  };
  const before = tracked();

  await using _dns = (await daemon.serve('dns', { portBindings: { '53/udp': [{ HostPort: '5353' }] } })).peer;

  assert.equal(before.length, 1);
  assert.deepEqual(tracked(), before);
});

test('a port published on one address answers there only', async () => {
  await using daemon = await TestDaemon.start();
  const { peer } = await daemon.serve('web', {
    portBindings: { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '8080' }] },
  });
  await using _web = peer;

  const answers = await Promise.all([host.tcp('127.0.0.1', 8080), host.tcp(HOST_IP, 8080), outside.tcp(HOST_IP, 8080)]);

  assert.deepEqual(answers, ['web sees 172.17.0.1', 'ECONNREFUSED', 'ECONNREFUSED']);
});

test('an address that the machine does not have is refused, by its port and for any port', async () => {
  await using daemon = await TestDaemon.start();

  for (const HostPort of ['8080', '']) {
    const portBindings = { '80/tcp': [{ HostIp: '192.0.2.99', HostPort }] };
    await assert.rejects(daemon.attach('web', { portBindings }), /192\.0\.2\.99:\d+: bind: cannot assign requested/);
  }
});

test('an unpublished port cannot be reached from outside, and answers the host', async () => {
  await using daemon = await TestDaemon.start();
  const { peer, endpoint } = await daemon.serve('web');
  await using _web = peer;
  const route = ['ip', 'route', 'add', '172.17.0.0/16', 'via', HOST_IP];
  execFileSync('nsenter', [`--net=/proc/self/fd/3`, ...route], {
    stdio: ['ignore', 'ignore', 'inherit', machine.outside],
  });

  const answers = await Promise.all([host.tcp(endpoint.ipAddress, 80), outside.tcp(endpoint.ipAddress, 80, 300)]);

  assert.deepEqual(answers, ['web sees 172.17.0.1', 'ETIMEDOUT']);
});

test('the loopback address of the host is closed to containers and to outside', async () => {
  await using daemon = await TestDaemon.start();
  const { peer } = await daemon.serve('web', {
    portBindings: { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '8080' }] },
  });
  await using _web = peer;
  await host.serveTcp(7070, 'secret');
  for (const [netns, gateway] of [
    [machine.outside, HOST_IP],
    [(await daemon.attach('evil')).netns, '172.17.0.1'],
  ] as const) {
    // A neighbour with root in its own namespace sends packets for 127.0.0.1 over the wire.
    const script = `ip addr del 127.0.0.1/8 dev lo; echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet
      ip route flush table local 127.0.0.0/8; ip route add 127.0.0.1 via ${gateway} onlink dev eth0`;
    execFileSync('nsenter', ['--net=/proc/self/fd/3', 'sh', '-c', script], {
      stdio: ['ignore', 'ignore', 'pipe', netns],
    });
    await using attacker = new Peer(netns);

    const answers = await Promise.all([attacker.tcp('127.0.0.1', 7070, 300), attacker.tcp('127.0.0.1', 8080, 300)]);

    assert.deepEqual(answers, ['ETIMEDOUT', 'ETIMEDOUT']);
  }
});

test('containers get out, under the address of the host', async () => {
  await using daemon = await TestDaemon.start();
  const { peer } = await daemon.serve('web');
  await using _web = peer;
  await outside.serveTcp(9090, 'internet');

  const answer = await peer.tcp('192.0.2.1', 9090);

  assert.equal(answer, `internet sees ${HOST_IP}`);
});

test('a port is free again after the detach', async () => {
  await using daemon = await TestDaemon.start();
  const portBindings = { '80/tcp': [{ HostPort: '8080' }] };
  const first = await daemon.serve('first', { portBindings });
  await using _first = first.peer;
  closeSandbox(daemon, 'first');

  const second = await daemon.serve('second', { portBindings });
  await using _second = second.peer;

  assert.equal(await host.tcp('127.0.0.1', 8080), 'second sees 172.17.0.1');
});

test('an address that is reused at once leads to its new owner, though the old namespace is still there', async () => {
  await using daemon = await TestDaemon.start();
  const first = await daemon.serve('first');
  await using _first = first.peer;
  await host.tcp(first.endpoint.ipAddress, 80);
  closeSandbox(daemon, 'first');

  const second = await daemon.serve('second');
  await using _second = second.peer;

  assert.equal(second.endpoint.ipAddress, first.endpoint.ipAddress);
  assert.equal(await host.tcp(second.endpoint.ipAddress, 80), 'second sees 172.17.0.1');
});
