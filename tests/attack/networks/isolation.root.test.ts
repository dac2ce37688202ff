import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { newNetns } from '@gantry/engine/host/namespaces.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { Peer } from '@gantry/testing/networks/peer.ts';
import { RawContainer } from '@gantry/testing/networks/raw-container.ts';
import { datagram, frame, packetOfFour, packetOfSix, RawLink } from '@gantry/testing/networks/raw-frames.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

/** Addresses beyond the machine, to which it has routes. */
const OUTSIDE = { 4: '198.51.100.7', 6: '2001:db8:9::7' } as const;
const FAMILIES = [4, 6] as const;
/** A sender for containers without IPv6. */
const FOREIGN_SENDER = 'fd00:99::5';
type Family = (typeof FAMILIES)[number];
type Target = Readonly<{ link: RawLink; 4: string; 6: string }>;

/** Frames that a container writes by itself get no further than its network lets it. */
suite('a container that writes its own frames', { concurrency: false }, () => {
  let engine: TestEngine;
  let outside: Target;
  const boxes = new Map<string, RawContainer>();
  /** The hardware addresses of the machine's ends of the networks. */
  const ends = new Map<string, string>();
  const box = (network: string): RawContainer => boxes.get(network)!;
  let count = 0;

  before(async () => {
    engine = await TestEngine.start();
    const netns = newNetns();
    await host(
      `ip link add uplink type veth peer name cable netns /proc/${process.pid}/fd/${netns}; ip link set uplink up`,
    );
    outside = { link: new RawLink(netns, 'cable', { up: true }), ...OUTSIDE };
    closeSync(netns);
    const { mac } = outside.link;
    await host(`ip address add 192.0.2.1/24 dev uplink; ip -6 address add 2001:db8::1/64 dev uplink nodad
      ip neighbour add 192.0.2.9 lladdr ${mac} dev uplink; ip neighbour add 2001:db8::9 lladdr ${mac} dev uplink
      ip route add default via 192.0.2.9; ip -6 route add default via 2001:db8::9
      echo 1 >/proc/sys/net/ipv6/conf/all/forwarding; echo 1 >/proc/sys/net/ipv4/conf/all/proxy_arp`);
    await create({ Name: 'inner', Internal: true }, '10.5.0.0/24');
    await create({ Name: 'dead-end', Driver: 'macvlan' }, '10.6.0.0/24');
    await create({ Name: 'four' }, '10.4.0.0/24');
    for (const name of ['theirs', 'their-inner']) {
      await host(`ip link add ${name} type bridge; ip link set ${name} up`); // the operator's
    }
    await create({ Name: 'their-inner', Internal: true, Options: bridgeName('their-inner') }, '10.10.0.0/24');
    await create({ Name: 'theirs', Options: bridgeName('theirs') }, '10.12.0.0/24');
    await create({ Name: 'six', EnableIPv6: true }, '10.7.0.0/24', 'fd00:7::/64');
    await create({ Name: 'inner-six', EnableIPv6: true, Internal: true }, '10.8.0.0/24', 'fd00:8::/64');
    await create({ Name: 'inner-later', Internal: true }, '10.9.0.0/24');
  });
  after(async () => {
    for (const one of boxes.values()) one[Symbol.dispose]();
    outside.link[Symbol.dispose]();
    await engine[Symbol.asyncDispose]();
  });

  const bridgeName = (name: string): object => ({ 'com.docker.network.bridge.name': name });

  async function host(script: string): Promise<string> {
    return await engine.onHost(['sh', '-ec', script]);
  }

  async function create(body: { Name: string } & Record<string, unknown>, ...subnets: string[]): Promise<void> {
    const IPAM = { Config: subnets.map((Subnet) => ({ Subnet })) };
    const { status, raw, body: answer } = await engine.post<{ Id: string }>('/networks/create', { IPAM, ...body });
    assert.equal(status, 201, raw.toString());
    boxes.set(body.Name, await RawContainer.run(engine, body.Name));
    const { Id } = answer;
    const link = { 'dead-end': `dm-${Id.slice(0, 10)}-x`, theirs: 'theirs', 'their-inner': 'their-inner' }[body.Name];
    ends.set(body.Name, await machineAddress(link ?? `gn-${Id.slice(0, 12)}`));
  }

  async function machineAddress(link: string): Promise<string> {
    return /ether (\S+)/.exec(await host(`ip link show ${link}`))![1]!;
  }

  /** Whether a datagram that a container sends by the machine, with a sender of its choice, gets to a link. */
  async function gets(network: string, family: Family, sender: string, target: Target): Promise<boolean> {
    const { link } = box(network);
    const mark = newMark();
    const way = { from: sender, to: target[family] };
    const body = datagram(5000, 5000, mark);
    const packet = family === 4 ? packetOfFour(way, 'udp', body) : packetOfSix(way, 'udp', body);
    link.send(frame(family === 4 ? 'ip' : 'ip6', { from: link.mac, to: ends.get(network)! }, packet));
    await allIsHandled();
    return target.link.hasSeen(mark);
  }

  function newMark(): Buffer {
    return Buffer.from(`datagram ${(count += 1)}.`);
  }

  /** Sends a datagram of a container that may, until it is outside. */
  async function allIsHandled(): Promise<void> {
    const mark = newMark();
    const { link, ip } = box('four');
    const to = ends.get('four')!;
    await eventually('a datagram that may leave', async () => {
      link.send(
        frame(
          'ip',
          { from: link.mac, to },
          packetOfFour({ from: ip, to: OUTSIDE[4] }, 'udp', datagram(5000, 5001, mark)),
        ),
      );
      return outside.link.hasSeen(mark) || undefined;
    });
  }
  /** The networks whose containers get to a target, by family. */
  async function networksThatGet(senders: readonly string[], to: Target, except?: string): Promise<string[]> {
    const found: string[] = [];
    for (const family of FAMILIES) {
      for (const network of senders) {
        const { ip, ipv6 } = box(network);
        const own = { 4: ip, 6: ipv6 === '' ? FOREIGN_SENDER : ipv6 };
        if (network !== except && (await gets(network, family, own[family], to))) found.push(`${network} ${family}`);
      }
    }
    return found;
  }

  const targetIn = (network: string): Target => {
    const { link, ip, ipv6 } = box(network);
    return { link, 4: ip, 6: ipv6 === '' ? '2001:db8:9::8' : ipv6 };
  };

  for (const isOn of [false, true]) {
    const name = isOn ? 'so it is where the operator switches IPv6 on for all links' : '';
    test(name || 'it gets out of networks that lead out, and into no other network', async () => {
      if (isOn) await host('echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6');
      const all = [...boxes.keys()];

      assert.deepEqual(await networksThatGet(all, outside), ['four 4', 'theirs 4', 'six 4', 'theirs 6', 'six 6']);
      for (const network of all) assert.deepEqual(await networksThatGet(all, targetIn(network), network), [], network);
    });
  }

  test('it gets to no neighbour by the way of the machine where they are apart', async () => {
    const apart = { 'com.docker.network.bridge.enable_icc': 'false' };
    await create({ Name: 'apart', EnableIPv6: true, Options: apart }, '10.11.0.0/24', 'fd00:11::/64');
    using neighbour = await RawContainer.run(engine, 'apart');
    const { ip, ipv6 } = box('apart');
    const target = { link: neighbour.link, 4: neighbour.ip, 6: neighbour.ipv6 };

    assert.deepEqual([await gets('apart', 4, ip, target), await gets('apart', 6, ipv6, target)], [false, false]);
  });

  test('it speaks to nobody outside under an address that leads elsewhere', async () => {
    const senders = { 4: '203.0.113.9', 6: '2001:db8:77::9' } as const;
    const sent = async (): Promise<boolean[]> => [
      await gets('four', 4, senders[4], outside),
      await gets('six', 4, senders[4], outside),
      await gets('six', 6, senders[6], outside),
    ];
    const before = await sent();
    // A container that leads on to others, as one of a VPN does: the machine knows the way to them.
    await host(`ip route add ${senders[4]} via ${box('six').ip}; ip -6 route add ${senders[6]} via ${box('six').ipv6}`);

    assert.deepEqual(
      [before, await sent()],
      [
        [false, false, false],
        [false, true, true],
      ],
    );
  });

  test('it answers the machine under no address that leads elsewhere, such as that of a name server', async () => {
    const netns = openSync(engine.netns, 'r');
    await using machine = new Peer(netns);
    await machine.serveUdp(5053, 'machine');
    closeSync(netns);
    const { link, ip, gateway } = box('four');
    const send = (from: string): void => {
      const packet = packetOfFour({ from, to: gateway }, 'udp', datagram(53, 5053, Buffer.from('an answer')));
      link.send(frame('ip', { from: link.mac, to: ends.get('four')! }, packet));
    };
    send(OUTSIDE[4]);
    await eventually('the answer to its own address', async () => {
      send(ip);
      await allIsHandled();
      return link.hasSeen(Buffer.from(`machine sees ${ip}`)) || undefined;
    });

    assert.equal(outside.link.hasSeen(Buffer.from(`machine sees ${OUTSIDE[4]}`)), false);
  });

  test('nobody outside gets in, as the sender of an answer neither', async () => {
    const { mac } = outside.link;
    const uplink = await machineAddress('uplink');
    const found: string[] = [];
    for (const [network, { link, ip, ipv6 }] of boxes) {
      for (const family of FAMILIES) {
        const way = { from: OUTSIDE[family], to: family === 4 ? ip : ipv6 };
        if (way.to === '') continue;
        const mark = newMark();
        const body = datagram(5000, 5999, mark);
        const packet = family === 4 ? packetOfFour(way, 'udp', body) : packetOfSix(way, 'udp', body);
        outside.link.send(frame(family === 4 ? 'ip' : 'ip6', { from: mac, to: uplink }, packet));
        await allIsHandled();
        if (link.hasSeen(mark)) found.push(`${network} ${family}`);
      }
    }

    assert.deepEqual(found, []);
  });
});
