import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { RawContainer } from '@gantry/testing/networks/raw-container.ts';
import {
  arp,
  datagram,
  frame,
  neighbourAdvertisement,
  neighbourSolicitation,
  packetOfFour,
  packetOfSix,
  type Tag,
} from '@gantry/testing/networks/raw-frames.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const EVERYBODY = 'ff:ff:ff:ff:ff:ff';
/** Receivers take such tags off, and read the packet then. */
const TAGS: readonly (readonly Tag[])[] = [
  [],
  ['vlan'],
  ['service'],
  ['vlan', 'vlan'],
  ['service', 'vlan'],
  ['service', 'service', 'vlan'],
];

/** A container that says it is somebody else: the gateway, or another container of its network. */
suite('a container that claims addresses of others', { concurrency: false }, () => {
  let engine: TestEngine;
  let [attacker, victim, third]: RawContainer[] = [];

  before(async () => {
    engine = await TestEngine.start();
    const Config = [{ Subnet: '10.7.0.0/24' }, { Subnet: 'fd00:7::/64' }];
    const { status } = await engine.post('/networks/create', { Name: 'six', EnableIPv6: true, IPAM: { Config } });
    assert.equal(status, 201);
    [attacker, victim, third] = await Promise.all([1, 2, 3].map(async () => await RawContainer.run(engine, 'six')));
    // Claims count at once, not a second after the last one.
    await victim!.inside('sh', '-c', 'echo 0 >/proc/sys/net/ipv4/neigh/eth0/locktime');
    await engine.onHost(['sh', '-c', 'for link in /proc/sys/net/ipv4/neigh/*; do echo 0 >$link/locktime; done']);
  });
  after(async () => {
    for (const box of [attacker, victim, third]) box?.[Symbol.dispose]();
    await engine[Symbol.asyncDispose]();
  });

  /** Every way to say that an address is at the attacker, sent to all and to the victim alone. */
  function claims(ip: string, ipv6: string, tags: readonly Tag[]): Buffer[] {
    const { mac: from } = attacker!.link;
    const own = attacker!.ipv6;
    const arps = [victim!.ip, victim!.gateway, ip].flatMap((target) =>
      (['request', 'reply'] as const).map((kind) => arp(kind, { sender: ip, senderMac: from, target })),
    );
    const sixes = [victim!.ipv6, victim!.gateway6].flatMap((to) => [
      packetOfSix({ from: own, to }, 'icmp6', neighbourAdvertisement(ipv6, from)),
      packetOfSix({ from: ipv6, to }, 'icmp6', neighbourAdvertisement(ipv6, from)),
      packetOfSix({ from: ipv6, to }, 'icmp6', neighbourSolicitation(to, from)),
    ]);
    return [victim!.link.mac, EVERYBODY].flatMap((to) => [
      ...arps.map((body) => frame('arp', { from, to }, body, tags)),
      ...sixes.map((body) => frame('ip6', { from, to }, body, tags)),
    ]);
  }

  type Ask = (...command: string[]) => Promise<string>;

  /** Addresses that somebody takes for the attacker's, without its own ones. */
  async function believed(ask: Ask): Promise<string[]> {
    const lines = (await ask('ip', 'neighbour', 'show')).split('\n');
    const wrong = lines.filter((line) => line.includes(attacker!.link.mac)).map((line) => line.split(' ')[0]!);
    return wrong.filter((ip) => ip !== attacker!.ip && ip !== attacker!.ipv6 && !ip.startsWith('fe80:'));
  }

  async function answers(ask: Ask, ...ips: string[]): Promise<void> {
    for (const ip of ips) await ask('busybox', 'ping', ip.includes(':') ? '-6' : '-4', '-c', '1', '-w', '60', ip);
  }

  test('neither its neighbours nor the machine believe it, by whatever frames', async () => {
    const ofVictim: Ask = async (...command) => await victim!.inside(...command);
    const ofMachine: Ask = async (...command) => await engine.onHost(command);
    const others = [victim!.gateway, victim!.gateway6, third!.ip, third!.ipv6];
    for (const tags of TAGS) {
      await answers(ofVictim, ...others);
      await answers(ofMachine, third!.ip, third!.ipv6, victim!.ip, victim!.ipv6);
      for (const [ip, ipv6] of [
        [victim!.gateway, victim!.gateway6],
        [third!.ip, third!.ipv6],
        [victim!.ip, victim!.ipv6],
      ] as const) {
        for (const one of claims(ip, ipv6, tags)) attacker!.link.send(one);
      }
      await answers(ofVictim, attacker!.ip);

      assert.deepEqual([await believed(ofVictim), await believed(ofMachine)], [[], []], tags.join());
    }
    await answers(ofVictim, ...others);
  });

  test('it does not get the packets of a hardware address that it uses', async () => {
    const { mac } = victim!.link;
    for (const to of [EVERYBODY, third!.link.mac]) {
      attacker!.link.send(
        frame('arp', { from: mac, to }, arp('request', { sender: '0.0.0.0', senderMac: mac, target: third!.ip })),
      );
    }
    const mark = Buffer.from('for the victim alone');
    third!.link.send(
      frame(
        'ip',
        { from: third!.link.mac, to: mac },
        packetOfFour({ from: third!.ip, to: victim!.ip }, 'udp', datagram(5000, 5000, mark)),
      ),
    );
    await answers(async (...command) => await third!.inside(...command), victim!.ip);

    assert.deepEqual([victim!.link.hasSeen(mark), attacker!.link.hasSeen(mark)], [true, false]);
  });

  test('it fills the memory of the machine with no hardware addresses', async () => {
    const body = arp('request', { sender: '0.0.0.0', senderMac: EVERYBODY, target: '10.7.0.200' });
    for (let number = 0; number < 40_000; number += 1) {
      const from = `06:00:00:${number
        .toString(16)
        .padStart(6, '0')
        .replaceAll(/(..)(?!$)/g, '$1:')}`;
      attacker!.link.send(frame('arp', { from, to: third!.link.mac }, body));
    }

    const known = await engine.onHost(['sh', '-c', 'bridge fdb show | grep -c "^06:00:00"']);

    assert.equal(Number(known) <= 16_384 && Number(known) > 10_000, true, known);
    await answers(async (...command) => await third!.inside(...command), victim!.ip);
  });

  test('addresses that nobody has may be claimed, as virtual ones are', async () => {
    const link = ['dev', 'eth0'];
    await attacker!.inside('ip', 'address', 'add', '10.7.0.99/24', ...link);
    await attacker!.inside('ip', 'address', 'add', 'fd00:7::99/64', 'nodad', ...link);

    await answers(async (...command) => await victim!.inside(...command), '10.7.0.99', 'fd00:7::99');
  });

  test('the next container with an address is protected too, also after a flush of the rules and a kill of the daemon', async () => {
    using next = await RawContainer.run(engine, 'six');
    await engine.onHost(['nft', 'flush', 'ruleset']);
    await engine.kill();
    await engine.startAgain();
    await answers(async (...command) => await victim!.inside(...command), next.ip, next.ipv6);
    for (const one of claims(next.ip, next.ipv6, [])) attacker!.link.send(one);
    await answers(async (...command) => await victim!.inside(...command), attacker!.ip);

    assert.deepEqual(await believed(async (...command) => await victim!.inside(...command)), [
      '10.7.0.99',
      'fd00:7::99',
    ]);
  });
});
