import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { newNetns, unshare, withNetns } from '@gantry/engine/host/namespaces.ts';
import { addAddress, listNeighbours } from '@gantry/engine/host/network/addresses.ts';
import { changeLink, createBridge, createVeth, getLink, listLinks } from '@gantry/engine/host/network/links.ts';
import { Netlink } from '@gantry/engine/host/network/netlink.ts';
import { createVxlan, DEFAULT_VXLAN_PORT } from '@gantry/engine/host/network/vxlan.ts';
import { Peer } from '@gantry/testing/networks/peer.ts';

import { prepareNetns } from '../endpoints/namespace.ts';
import { Fabric } from './fabric.ts';
import { VxlanGuard } from './guard.ts';
import type { Member } from './members/members.ts';
import { nameNetns, openNamedNetns } from './named-netns.ts';
import { Balancing, publishedPorts, virtualAddresses } from './services/balancing.ts';

const execute = promisify(execFile);
const VNI = 4100;
const MTU = 1450;

/** A machine on the switch, with its part of the overlay. */
class Host {
  readonly netns: number;
  readonly route: Netlink;
  readonly ip: string;
  readonly path: string;
  fabric: Fabric;

  constructor(folder: string, bridge: { netns: number; index: number }, number: number) {
    this.ip = `192.0.2.${number}`;
    this.netns = newNetns();
    this.route = withNetns(this.netns, () => new Netlink());
    using inSwitch = withNetns(bridge.netns, () => new Netlink());
    const peer = { name: 'eth0', netns: this.netns };
    inSwitch.apply(createVeth({ name: `to${number}`, master: bridge.index, up: true, peer }));
    const link = getLink(this.route, 'eth0').index;
    this.route.apply(changeLink(link, { up: true }), addAddress({ link, ip: this.ip, prefixLength: 24 }));
    this.path = join(folder, `host${number}`, 'net');
    this.fabric = this.open();
  }

  open(vni = VNI): Fabric {
    return Fabric.open(this.route, { path: this.path, vni, port: DEFAULT_VXLAN_PORT, local: this.ip, mtu: MTU });
  }

  /** Begins like a new daemon: the kernel has everything still. */
  openAgain(): void {
    this.fabric[Symbol.dispose]();
    this.fabric = this.open();
  }

  add(ip: string): Box {
    const netns = newNetns(prepareNetns);
    const index = this.fabric.addPort(netns, 'eth1', ip);
    using inside = withNetns(netns, () => new Netlink());
    inside.apply(
      changeLink(1, { up: true }),
      changeLink(index, { up: true }),
      addAddress({ link: index, ip, prefixLength: 24 }),
    );
    return { netns, ip, host: this.ip };
  }
}

type Box = Readonly<{ netns: number; ip: string; host: string }>;

suite('the network of several hosts', { concurrency: false }, () => {
  let folder: string;
  let hosts: Host[];
  let boxes: Box[];
  let switchNetns: number;

  const reachAll = (): void => {
    for (const host of hosts) {
      const others = boxes.filter((box) => box.host !== host.ip);
      host.fabric.reach(new Map(others.map((box) => [box.ip, box.host])));
    }
  };

  before(() => {
    unshare('net', 'mount');
    folder = mkdtempSync(join(tmpdir(), 'gantry-overlay-'));
    switchNetns = newNetns();
    const bridge = withNetns(switchNetns, () => {
      using route = new Netlink();
      route.apply(createBridge({ name: 'switch', mac: '02:42:ff:00:00:01', up: true }));
      return getLink(route, 'switch').index;
    });
    hosts = [1, 2, 3].map((number) => new Host(folder, { netns: switchNetns, index: bridge }, number));
    boxes = hosts.map((host, at) => host.add(`10.0.1.${at + 5}`));
    reachAll();
  });
  after(() => {
    for (const { fabric, route, netns } of hosts) {
      fabric.remove();
      route[Symbol.dispose]();
      closeSync(netns);
    }
    for (const { netns } of boxes) closeSync(netns);
    closeSync(switchNetns);
    rmSync(folder, { recursive: true, force: true });
  });

  /** A program in a namespace. */
  async function inside(netns: number, ...command: string[]): Promise<string> {
    const words = [`--net=/proc/${process.pid}/fd/${netns}`, ...command];
    return (await execute('nsenter', words, { timeout: 60_000 })).stdout;
  }

  /** Whether an address answers, in the end: the kernel lets packets through a new link when it has noticed it. */
  async function pings(from: Box, to: string): Promise<boolean> {
    for (const until = performance.now() + 60_000; performance.now() < until;) {
      try {
        await inside(from.netns, 'busybox', 'ping', '-c', '1', '-W', '1', to);
        return true;
      } catch {
        continue;
      }
    }
    return false;
  }

  test('containers of different hosts reach each other, with packets as large as their links take', async () => {
    const [one, two, three] = boxes as [Box, Box, Box];

    assert.deepEqual([await pings(one, two.ip), await pings(three, one.ip)], [true, true]);
    await inside(one.netns, 'busybox', 'ping', '-c', '1', '-W', '30', '-s', String(MTU - 28), two.ip);
    await using server = new Peer(three.netns);
    await using client = new Peer(two.netns);
    await Promise.all([server.serveTcp(80, 'three'), server.serveUdp(53, 'three')]);
    assert.deepEqual(
      [await client.tcp(three.ip, 80), await client.udp(three.ip, 53)],
      [`three sees ${two.ip}`, `three sees ${two.ip}`],
    );
  });

  test('nothing is flooded: a question for an unknown address stays on its host', async () => {
    const [one] = boxes as [Box];
    const before = sentBy(hosts[0]!);

    await assert.rejects(inside(one.netns, 'busybox', 'ping', '-c', '1', '-W', '2', '10.0.1.200'));

    assert.equal(sentBy(hosts[0]!), before);
  });

  function sentBy({ path }: Host): bigint {
    const netns = openNamedNetns(path)!;
    using within = withNetns(netns, () => new Netlink());
    closeSync(netns);
    return getLink(within, 'vxlan0').counters.txPackets;
  }

  test('the next daemon finds everything, and removes things that have gone', async () => {
    const [one, two, three] = boxes as [Box, Box, Box];
    hosts[0]!.openAgain();
    assert.equal(await pings(one, two.ip), true);

    hosts[0]!.fabric.reach(new Map([[two.ip, two.host]]));

    const netns = openNamedNetns(hosts[0]!.path)!;
    using within = withNetns(netns, () => new Netlink());
    closeSync(netns);
    assert.deepEqual(
      listNeighbours(within)
        .map(({ ip }) => ip)
        .filter((ip) => ip.startsWith('10.')), // others are the kernel's own
      [two.ip],
    );
    reachAll();
    assert.equal(await pings(one, three.ip), true);
  });

  test('a host that is none is left out, and the others are reached', async () => {
    const [one, two, three] = boxes as [Box, Box, Box];
    const { fabric } = hosts[0]!;
    const good = [two, three].map(({ ip, host }) => [ip, host] as const);
    const bad = Array.from({ length: 40 }, (_, at) => [`10.0.1.${at + 100}`, '2001:db8::1'] as const);
    fabric.reach(new Map());

    assert.deepEqual(fabric.reach(new Map([...bad, ...good])), new Set(['2001:db8::1']));
    assert.deepEqual([await pings(one, two.ip), await pings(one, three.ip)], [true, true]);

    // An address moves there, and back.
    assert.deepEqual(fabric.reach(new Map([...good, [three.ip, '::1']])), new Set(['::1']));
    assert.deepEqual(fabric.reach(new Map(good)), new Set());
    assert.deepEqual(await pings(one, three.ip), true);
  });

  test('an address moves to another host, and back', async () => {
    const [one, two] = boxes as [Box, Box];
    const moved = hosts[2]!.add('10.0.1.30');
    boxes.push(moved);
    reachAll();
    assert.deepEqual([await pings(one, moved.ip), await pings(two, moved.ip)], [true, true]);
    for (const host of [hosts[0]!, hosts[2]!]) {
      boxes.pop();
      const next = host.add('10.0.1.30');
      boxes.push(next);
      reachAll();
      assert.equal(await pings(two, next.ip), true);
      if (host === hosts[2]) closeSync(next.netns);
    }
    closeSync(moved.netns);
    boxes.pop();
    reachAll();
  });

  test('steps that a killed daemon began are completed, and begun removals are done, after each step', () => {
    const host = hosts[1]!;
    const settings = {
      path: join(folder, 'begun', 'net'),
      vni: 4200,
      port: DEFAULT_VXLAN_PORT,
      local: host.ip,
      mtu: MTU,
    };
    const steps: ((netns: number) => void)[] = [
      () => undefined,
      (netns) => inNetns(netns, (route) => route.apply(createBridge({ name: 'br0', mac: '02:42:00:00:00:01' }))),
      (netns) => host.route.apply(createVxlan({ ...settings, name: 'vxlan0', netns })),
    ];
    const begin = (count: number): void => {
      mkdirSync(dirname(settings.path), { recursive: true });
      writeFileSync(settings.path, '');
      if (count === 0) return;
      const netns = newNetns(prepareNetns);
      nameNetns(netns, settings.path);
      for (const step of steps.slice(0, count)) step(netns);
      closeSync(netns);
    };
    for (let count = 0; count <= steps.length; count += 1) {
      begin(count);
      const fabric = Fabric.open(host.route, settings);
      const netns = openNamedNetns(settings.path)!;
      inNetns(netns, (route) => {
        const { name, up } = listLinks(route).find(({ master }) => master !== 0)!;
        assert.deepEqual([name, up], ['vxlan0', true]);
      });
      closeSync(netns);
      fabric.remove();
      begin(count);
      Fabric.remove(settings.path);
      Fabric.remove(settings.path); // a second time
      assert.equal(existsSync(settings.path), false);
    }
    assert.doesNotMatch(readFileSync('/proc/thread-self/mountinfo', 'utf8'), /begun/);
  });

  function inNetns(netns: number, work: (route: Netlink) => void): void {
    using route = withNetns(netns, () => new Netlink());
    work(route);
  }

  const task = (box: Box, serves: boolean): Member => {
    return { kind: 'task', id: box.ip, service: 's', name: box.ip, ip: box.ip, host: box.host, serves };
  };

  test('a virtual address leads to all tasks of its service in turn, and to none that leaves', async () => {
    const [one, two, three] = boxes as [Box, Box, Box];
    const service: Member = { kind: 'service', id: 's', name: 'web', aliases: [], vip: '10.0.1.2', ports: [] };
    const balancing = new Balancing('container');
    await using client = new Peer(one.netns);
    await using first = new Peer(two.netns);
    await using second = new Peer(three.netns);
    await Promise.all([first.serveTcp(8080, 'two'), second.serveTcp(8080, 'three')]);
    const lead = (...serving: boolean[]): void => {
      const members = [service, task(two, serving[0]!), task(three, serving[1]!)];
      balancing.write(one.netns, virtualAddresses(members, 'one'));
    };
    const heard = async (): Promise<string[]> => {
      const answers = new Set<string>();
      for (let call = 0; call < 40; call += 1) answers.add((await client.tcp('10.0.1.2', 8080)).split(' ')[0]!);
      return [...answers].toSorted();
    };

    lead(true, true);
    const both = await heard();
    lead(true, false);
    const left = await heard();
    lead(false, false);
    const none = await heard();
    lead(false, true);
    const back = await heard();
    balancing.write(one.netns, []);
    balancing.write(one.netns, virtualAddresses([service, task(two, true)], 'one'));

    assert.deepEqual(
      [both, left, none, back, await heard()],
      [['three', 'two'], ['two'], ['EHOSTUNREACH'], ['three'], ['two']],
    );
  });

  test('a flow of UDP that goes on finds another task as soon as its own leaves', async () => {
    const [one, two, three] = boxes as [Box, Box, Box];
    const vip = '10.0.1.3';
    const service: Member = { kind: 'service', id: 's', name: 'log', aliases: [], vip, ports: [] };
    const balancing = new Balancing('container');
    await using client = new Peer(one.netns);
    await using first = new Peer(two.netns);
    await using second = new Peer(three.netns);
    await Promise.all([first.serveUdp(5140, 'two'), second.serveUdp(5140, 'three')]);
    const lead = (...serving: boolean[]): void => {
      const members = [service, task(two, serving[0]!), task(three, serving[1]!)];
      balancing.write(one.netns, virtualAddresses(members, 'one'));
    };
    const heard = async (): Promise<string> => (await client.udp(vip, 5140, { from: 5141 })).split(' ')[0]!;

    lead(true, false);
    const before = [await heard(), await heard()];
    lead(false, true);

    assert.deepEqual([...before, await heard()], ['two', 'two', 'three']);
  });

  test('a flow of UDP that began before its service had a task is led to the first one', async () => {
    const [one, two] = boxes as [Box, Box];
    const vip = '10.0.1.4';
    const service: Member = { kind: 'service', id: 's', name: 'log', aliases: [], vip, ports: [] };
    const balancing = new Balancing('container');
    await using client = new Peer(one.netns);
    await using server = new Peer(two.netns);
    await server.serveUdp(5142, 'two');
    const lead = (...members: Member[]): void => balancing.write(one.netns, virtualAddresses(members, 'one'));
    const sent = async (timeoutMs?: number): Promise<string> =>
      (await client.udp(vip, 5142, { from: 5143, ...(timeoutMs !== undefined && { timeoutMs }) })).split(' ')[0]!;

    lead();
    const before = await sent(100);
    lead(service, task(two, true));
    const led = await sent();
    lead(service, task(two, false));
    const between = await sent(100);
    lead(service, task(two, true));

    assert.deepEqual([before, led, between, await sent()], ['ETIMEDOUT', 'two', 'ETIMEDOUT', 'two']);
  });

  test('a flow of UDP to a published port is led to the first task, to a new port of it, and to a new service', async () => {
    const [one, two, three] = boxes as [Box, Box, Box];
    const service = (target: number): Member => {
      const ports = [{ protocol: 'udp' as const, published: 5150, target }];
      return { kind: 'service', id: 's', name: 'log', aliases: [], ports };
    };
    const balancing = new Balancing('ingress');
    await using client = new Peer(two.netns);
    await using server = new Peer(three.netns);
    await Promise.all([server.serveUdp(5151, 'first'), server.serveUdp(5152, 'second')]);
    await inside(one.netns, 'sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward');
    const lead = (...members: Member[]): void => balancing.write(one.netns, publishedPorts(members, 'one'));
    const sent = async (timeoutMs?: number): Promise<string> =>
      (await client.udp(one.ip, 5150, { from: 5153, ...(timeoutMs !== undefined && { timeoutMs }) })).split(' ')[0]!;

    lead();
    const before = await sent(100);
    lead(service(5151));
    const idle = await sent(100);
    lead(service(5151), task(three, true));
    const led = await sent();
    lead(service(5152), task(three, true));
    const moved = await sent();
    lead();
    const after = await sent(100);
    lead(service(5151), task(three, true));

    const answers = [before, idle, led, moved, after, await sent()];
    assert.deepEqual(answers, ['ETIMEDOUT', 'ETIMEDOUT', 'first', 'second', 'ETIMEDOUT', 'first']);
  });

  test('packets to another address than the advertised one, or from no node, are dropped, for its own networks only', async () => {
    const [one, two] = boxes as [Box, Box];
    const host = hosts[0]!;
    const other = '192.0.2.101';
    const link = getLink(host.route, 'eth0').index;
    host.route.apply(addAddress({ link, ip: other, prefixLength: 24 }));
    const guard = new VxlanGuard(folder);
    const write = (vni: number, nodes = [hosts[1]!.ip, 'zzz']): void =>
      withNetns(host.netns, () => guard.write([{ vni, local: host.ip }], DEFAULT_VXLAN_PORT, nodes));
    hosts[1]!.fabric.reach(new Map([[one.ip, other]]));

    write(VNI + 1);
    assert.equal(await pings(two, one.ip), true);
    write(VNI);
    await assert.rejects(inside(two.netns, 'busybox', 'ping', '-c', '1', '-W', '2', one.ip));
    reachAll();
    assert.equal(await pings(two, one.ip), true);
    write(VNI, [hosts[2]!.ip]);
    await assert.rejects(inside(two.netns, 'busybox', 'ping', '-c', '1', '-W', '2', one.ip));
    withNetns(host.netns, () => guard.write([], DEFAULT_VXLAN_PORT, []));
  });

  test('the number of a removed network is free at once', () => {
    const host = hosts[0]!;
    const path = join(folder, 'short', 'net');
    for (let round = 0; round < 3; round += 1) {
      const fabric = Fabric.open(host.route, { path, vni: 4300, port: DEFAULT_VXLAN_PORT, local: host.ip, mtu: MTU });
      fabric.addPort(boxes[0]!.netns, 'eth7', '10.0.2.5');
      fabric.remove();
    }
  });
});
