import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import type { NetworkWire } from '@gantry/engine/networks/schema.ts';
import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { RawContainer } from '@gantry/testing/networks/raw-container.ts';
import { datagram, frame, packetOfFour, RawLink } from '@gantry/testing/networks/raw-frames.ts';

const VXLAN_PORT = 5789;
const VXLAN_FLAGS = 0x08;
const STRANGER = '10.78.0.99';
/** Listens on ports of all IPv6 addresses, as a manager does whose address is one; prints a line then. */
const LISTEN = `
const { createServer } = require('node:net');
for (const port of [2377, 2378, 8086]) createServer((socket) => socket.end()).listen({ host: '::', ipv6Only: true, port });
setTimeout(() => console.log('listening'), 0);`;
/** The settings of all links but loopback that concern routers. */
const ROUTERS = `cd /proc/sys/net/ipv6/conf; for link in *; do case $link in all|lo) continue;; esac
  echo $link $(cat $link/accept_ra $link/autoconf $link/accept_redirects ../../ipv4/conf/$link/accept_redirects); done`;
/** Prints the addresses, as `ip:port`, that accept a connection within three seconds. */
const CONNECT = `
const { connect } = require('node:net');
for (const at of process.argv.slice(1)) {
  const [, host, port] = /^(.*):(.*)$/.exec(at);
  const socket = connect({ host, port: Number(port) });
  const end = setTimeout(() => socket.destroy(), 3000);
  socket.on('connect', () => console.log(at)).on('error', () => undefined).on('connect', () => socket.destroy());
  socket.on('close', () => clearTimeout(end));
}`;

/** Address of a machine for the traffic of overlays. */
function dataPathOf({ ip }: ClusterHost): string {
  return ip.replace('10.77.', '10.78.');
}

suite('the tunnels and ports of a cluster', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two]: ClusterHost[] = [];
  let vni: number;
  let [here, there]: RawContainer[] = [];
  let count = 0;

  before(async () => {
    all = await ClusterHosts.start(2, { image: true });
    [one, two] = all.hosts;
    for (const host of all.hosts) {
      await host.engine.onHost(['ip', 'addr', 'add', `${dataPathOf(host)}/24`, 'dev', 'eth0']);
    }
    await one!.init({ DataPathAddr: dataPathOf(one!), DataPathPort: VXLAN_PORT });
    await two!.join(one!, 'Worker', undefined, { DataPathAddr: dataPathOf(two!) });
    const { status } = await one!.engine.post('/networks/create', {
      Name: 'shut',
      Driver: 'overlay',
      Attachable: true,
    });
    assert.equal(status, 201);
    here = await RawContainer.run(one!.engine, 'shut', {}, 'here');
    there = await RawContainer.run(two!.engine, 'shut', {}, 'there');
    const { body } = await one!.engine.get<NetworkWire>('/networks/shut');
    vni = Number(Object.values(body.Options)[0]);
  });
  after(async () => {
    for (const box of [here, there]) box?.[Symbol.dispose]();
    await all[Symbol.asyncDispose]();
  });

  /** The body of a datagram of a tunnel, with a packet for a container. */
  function tunnelled(victim: RawContainer, mark: Buffer): Buffer {
    const head = Buffer.alloc(8);
    head[0] = VXLAN_FLAGS;
    head.writeUIntBE(vni, 4, 3);
    const packet = packetOfFour({ from: '10.0.0.200', to: victim.ip }, 'udp', datagram(5000, 5000, mark));
    return Buffer.concat([head, frame('ip', { from: '02:42:00:00:00:99', to: victim.link.mac }, packet)]);
  }

  /** Whether a container gets a packet that another one sends to a tunnel's port. */
  async function gets(
    victim: RawContainer,
    attacker: RawContainer,
    way: { from: string; to: string },
  ): Promise<boolean> {
    const mark = Buffer.from(`datagram ${(count += 1)}.`);
    const gateway = await machineOf(attacker);
    const body = datagram(5000, VXLAN_PORT, tunnelled(victim, mark));
    attacker.link.send(frame('ip', { from: attacker.link.mac, to: gateway }, packetOfFour(way, 'udp', body)));
    await reaches();
    return victim.link.hasSeen(mark);
  }

  /** Path of the network's namespace on a machine. */
  async function overlayOf({ engine }: ClusterHost): Promise<string> {
    const { body } = await engine.get<NetworkWire>('/networks/shut');
    return join(engine.directory, 'exec', 'overlay', body.Id);
  }

  async function machineOf(box: RawContainer): Promise<string> {
    await box.inside('busybox', 'ping', '-c', '1', '-w', '60', box.gateway);
    return /lladdr (\S+)/.exec(await box.inside('ip', 'neighbour', 'show', box.gateway))![1]!;
  }

  /** The containers of the network still hear each other. */
  async function reaches(): Promise<void> {
    await eventually(
      'an answer by the tunnel',
      async () => await here!.inside('busybox', 'ping', '-c', '1', '-w', '60', there!.ip),
    );
    await eventually(
      'an answer by the tunnel',
      async () => await there!.inside('busybox', 'ping', '-c', '1', '-w', '60', here!.ip),
    );
  }

  test('tunnels have the port and the addresses of the data path', async () => {
    const { body } = await one!.engine.get<{ Swarm: { Cluster: { DataPathPort: number }; NodeAddr: string } }>('/info');
    assert.deepEqual([body.Swarm.Cluster.DataPathPort, body.Swarm.NodeAddr], [VXLAN_PORT, one!.ip]);
    for (const [host, other] of [
      [one!, two!],
      [two!, one!],
    ] as const) {
      const inside = ['nsenter', `--net=${await overlayOf(host)}`];
      const link = await host.engine.onHost([...inside, 'ip', '-d', 'link', 'show', 'vxlan0']);
      const ends = await host.engine.onHost([...inside, 'bridge', 'fdb', 'show', 'dev', 'vxlan0']);

      assert.match(link, new RegExp(`local ${dataPathOf(host)} .*dstport ${VXLAN_PORT} `));
      assert.deepEqual(ends.match(/(?<=dst )\S+/g), [dataPathOf(other)]);
    }
  });

  test('a container of another network puts no packets into a tunnel of its own machine, whoever it says it is', async () => {
    using attacker = await RawContainer.run(one!.engine, 'bridge');
    const found: string[] = [];
    for (const from of [attacker.ip, dataPathOf(two!), dataPathOf(one!), STRANGER]) {
      for (const to of [dataPathOf(one!), attacker.gateway]) {
        if (await gets(here!, attacker, { from, to })) found.push(`${from} to ${to}`);
      }
    }

    assert.deepEqual(found, []);
  });

  test('nor into one of another machine', async () => {
    using attacker = await RawContainer.run(one!.engine, 'bridge');
    const found: string[] = [];
    for (const from of [attacker.ip, dataPathOf(two!), dataPathOf(one!), STRANGER]) {
      if (await gets(there!, attacker, { from, to: dataPathOf(two!) })) found.push(from);
    }

    assert.deepEqual(found, []);
  });

  test('a machine that is no node of the cluster puts none in', async () => {
    const netns = openSync(one!.engine.netns, 'r');
    using uplink = new RawLink(netns, 'eth0');
    closeSync(netns);
    const sent = async (from: string): Promise<boolean> => {
      const mark = Buffer.from(`datagram ${(count += 1)}.`);
      const body = datagram(5000, VXLAN_PORT, tunnelled(there!, mark));
      const to = /ether (\S+)/.exec(await two!.engine.onHost(['ip', 'link', 'show', 'eth0']))![1]!;
      uplink.send(frame('ip', { from: uplink.mac, to }, packetOfFour({ from, to: dataPathOf(two!) }, 'udp', body)));
      await reaches();
      return there!.link.hasSeen(mark);
    };

    assert.deepEqual([await sent(STRANGER), await sent(dataPathOf(one!))], [false, true]);
  });

  test('no link of an overlay accepts routers and redirects: in its containers, on the machine, and where it is bridged', async () => {
    const fabrics = `for file in ${one!.engine.directory}/exec/overlay/*; do nsenter --net=$file sh -c '${ROUTERS}'; done`;
    const links = {
      container: await here!.inside('sh', '-c', ROUTERS),
      machine: await one!.engine.onHost(['sh', '-c', ROUTERS]),
      fabric: await one!.engine.onHost(['sh', '-c', fabrics]),
    };

    const believing = Object.entries(links).flatMap(([place, lines]) => {
      const all = lines.trim().split('\n');
      assert.ok(all.length > 1, `${place}: ${lines}`);
      return all.filter((line) => !line.endsWith(' 0 0 0 0')).map((line) => `${place}: ${line.split(' ')[0]}`);
    });
    assert.deepEqual(believing, ['machine: default', 'machine: eth0']);
  });

  for (const [network, body] of [
    ['bridge', undefined],
    ['shut', undefined],
    ['six', { EnableIPv6: true, IPAM: { Config: [{ Subnet: '10.6.0.0/24' }, { Subnet: 'fd00:6::/64' }] } }],
    ['inner', { Internal: true, IPAM: { Config: [{ Subnet: '10.8.0.0/24' }] } }],
  ] as const) {
    test(`a container of the network ${network} does not reach the ports of the cluster on its machine`, async () => {
      const { engine, ip } = one!;
      if (body !== undefined) await engine.post('/networks/create', { Name: network, ...body });
      const HostConfig = { NetworkMode: 'host' };
      await engine.run(['httpd', '-f', '-p', '8080'], { HostConfig }, `control-${network}`);
      const listening = spawn('nsenter', [`--net=${engine.netns}`, process.execPath, '-e', LISTEN], {
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      using _end = { [Symbol.dispose]: () => void listening.kill('SIGKILL') };
      await once(listening.stdout, 'data');
      using box = await RawContainer.run(engine, network);
      const places = network === 'inner' ? [box.gateway] : [ip, '172.17.0.1'];
      const at = [ip, ...places].flatMap((host) => [2377, 2378, 8080].map((port) => `${host}:${port}`));
      const six = network === 'six' ? [2377, 2378, 8086].map((port) => `${box.gateway6}:${port}`) : [];
      await eventually('the control answers', async () => await engine.fetchText(8080));

      const open = await box.inside(process.execPath, '-e', CONNECT, ...at, ...six);

      const expected = [...places.map((host) => `${host}:8080`), ...six.slice(2)];
      assert.deepEqual([...new Set(open.trim().split('\n'))].toSorted(), expected.toSorted());
      await engine.delete(`/containers/control-${network}?force=1`);
    });
  }

  test('the ports are closed under the next daemon too, and open after the end of the membership', async () => {
    const closed = async (): Promise<string> =>
      /elements = ([^}]*)/.exec(
        await two!.engine.onHost(['nft', 'list', 'set', 'ip', 'gantry-gantry0', 'closed']),
      )?.[1] ?? '';
    await two!.engine.kill();
    await two!.engine.startAgain();
    const before = await closed();
    there![Symbol.dispose]();
    await two!.engine.delete('/containers/there?force=1');
    await two!.engine.post('/swarm/leave');

    assert.deepEqual([before.match(/\d+/g), await closed()], [['2377', '2378', String(VXLAN_PORT)], '']);
  });
});
