import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { RawContainer } from '@gantry/testing/networks/raw-container.ts';
import {
  frame,
  packetOfFour,
  packetOfSix,
  RawLink,
  redirectOfFour,
  routerAdvertisement,
} from '@gantry/testing/networks/raw-frames.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const EVERYBODY = { mac: '33:33:00:00:00:01', ip: 'ff02::1' };
const ROUTER = 'fe80::bad';
const PREFIX = 'fd00:bad::';
const ECHO_REPLY = Buffer.from([0, 0, 0, 0, 0, 1, 0, 1]);

/** Containers that pretend to be routers: neither the machine nor their neighbours believe them. */
suite('a container that pretends to be a router', { concurrency: false }, () => {
  let engine: TestEngine;
  let cable: RawLink;
  const networks = ['bridge', 'four', 'inner', 'mac'];

  before(async () => {
    engine = await TestEngine.start();
    await engine.onHost(['ip', 'link', 'add', 'uplink', 'type', 'veth', 'peer', 'name', 'cable']);
    for (const link of ['uplink', 'cable']) await engine.onHost(['ip', 'link', 'set', link, 'up']);
    cable = openCable();
    await create({ Name: 'four' }, '10.4.0.0/24');
    await create({ Name: 'inner', Internal: true }, '10.5.0.0/24');
    await create({ Name: 'mac', Driver: 'macvlan' }, '10.6.0.0/24');
  });
  after(async () => {
    cable[Symbol.dispose]();
    await engine[Symbol.asyncDispose]();
  });

  function openCable(): RawLink {
    const netns = openSync(engine.netns, 'r');
    try {
      return new RawLink(netns, 'cable');
    } finally {
      closeSync(netns);
    }
  }

  async function create(body: object, ...subnets: string[]): Promise<void> {
    const IPAM = { Config: subnets.map((Subnet) => ({ Subnet })) };
    const { status, raw } = await engine.post('/networks/create', { IPAM, ...body });
    assert.equal(status, 201, raw.toString());
  }

  function advertise(link: RawLink): void {
    const packet = packetOfSix({ from: ROUTER, to: EVERYBODY.ip }, 'icmp6', routerAdvertisement(link.mac, PREFIX));
    link.send(frame('ip6', { from: link.mac, to: EVERYBODY.mac }, packet));
  }

  /** Routes and addresses that somebody learns from routers. */
  async function learned(ask: (...command: string[]) => Promise<string>): Promise<string[]> {
    const lines = [await ask('ip', '-6', 'route'), await ask('ip', '-6', '-o', 'address')].join('\n').split('\n');
    return lines.filter((line) => line.includes(ROUTER) || line.includes(PREFIX.slice(0, -1)));
  }

  const host = async (...command: string[]): Promise<string> => await engine.onHost(command);

  /** The machine's real router is believed: advertisements before that one have been handled, too. */
  async function throughTheCable(): Promise<string[]> {
    await host('ip', '-6', 'route', 'flush', 'dev', 'uplink', 'proto', 'ra');
    advertise(cable);
    await eventually('the route of the real router', async () => {
      const all = await learned(host);
      return all.some((line) => line.includes('default') && line.includes('dev uplink')) || undefined;
    });
    return (await learned(host)).filter((line) => !line.includes('uplink'));
  }

  test('the machine learns no route and no address from it, whatever its network', async () => {
    for (const network of networks) {
      using box = await RawContainer.run(engine, network);
      advertise(box.link);

      assert.deepEqual(await throughTheCable(), [], network);
    }
  });

  test('so it is after the machine has begun to forward IPv6, in older and newer networks', async () => {
    await create({ Name: 'six', EnableIPv6: true }, '10.7.0.0/24', 'fd00:7::/64');
    await create({ Name: 'inner-six', EnableIPv6: true, Internal: true }, 'fd00:8::/64');
    await create({ Name: 'later' }, '10.9.0.0/24');

    for (const network of [...networks, 'six', 'inner-six', 'later']) {
      using box = await RawContainer.run(engine, network);
      advertise(box.link);

      assert.deepEqual(await throughTheCable(), [], network);
    }
  });

  test('no link to a container accepts advertisements, addresses and redirects, of an earlier daemon neither', async () => {
    const script = `cd /proc/sys/net/ipv6/conf; for link in gn-* gantry0 veth* dm-*; do
      echo $(cat $link/accept_ra $link/autoconf $link/accept_redirects ../../ipv4/conf/$link/accept_redirects); done | sort -u`;
    await host('sh', '-c', 'echo 2 | tee /proc/sys/net/ipv6/conf/gn-*/accept_ra'); // as an earlier version did
    await engine.kill();
    await engine.startAgain();

    assert.equal(await host('sh', '-c', script), '0 0 0 0\n');
  });

  test('its neighbours learn nothing from it', async () => {
    using attacker = await RawContainer.run(engine, 'six');
    using victim = await RawContainer.run(engine, 'six');
    advertise(attacker.link);
    await victim.inside('busybox', 'ping', '-6', '-c', '1', '-w', '60', attacker.ipv6);

    assert.deepEqual(await learned(async (...command) => await victim.inside(...command)), []);
  });

  test('its redirects in the name of the gateway move nobody', async () => {
    const outside = '198.51.100.7';
    using attacker = await RawContainer.run(engine, 'four');
    using victim = await RawContainer.run(engine, 'four');
    await victim.inside('busybox', 'ping', '-c', '1', '-w', '60', attacker.ip); // it has to know the new router
    const cause = packetOfFour({ from: victim.ip, to: outside }, 'icmp', ECHO_REPLY);
    const redirect = packetOfFour({ from: victim.gateway, to: victim.ip }, 'icmp', redirectOfFour(attacker.ip, cause));
    attacker.link.send(frame('ip', { from: attacker.link.mac, to: victim.link.mac }, redirect));
    await attacker.inside('busybox', 'ping', '-c', '1', '-w', '60', victim.ip);

    const route = await victim.inside('ip', 'route', 'get', outside);

    assert.match(route, new RegExp(`via ${victim.gateway} `));
    assert.doesNotMatch(route, /redirected/);
  });
});
