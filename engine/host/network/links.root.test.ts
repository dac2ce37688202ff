import assert from 'node:assert/strict';
import { closeSync, readFileSync, readlinkSync } from 'node:fs';
import { test } from 'node:test';

import { newNetns, unshare, withNetns } from '../namespaces.ts';
import {
  addAddress,
  addNeighbour,
  addRoute,
  deleteAddress,
  deleteNeighbour,
  deleteRoute,
  listAddresses,
  listNeighbours,
  listPinned,
  listRoutes,
  pinToPort,
} from './addresses.ts';
import { changeLink, createBridge, createVeth, deleteLink, deleteLinks, getLink, listLinks } from './links.ts';
import { Netlink } from './netlink.ts';
import { Nftables, ruleGeneration } from './nftables.ts';
import { reservePort } from './sockets.ts';

// This thread leaves the machine's network for good: nothing here can touch a real link.
unshare('net');

const here = (): string => readlinkSync('/proc/thread-self/ns/net');

/** A namespace with a bridge in it and a socket to it. */
function bridged(): { route: Netlink; bridge: number } & Disposable {
  let route: Netlink | undefined;
  const netns = newNetns(() => {
    route = new Netlink();
    route.apply(createBridge({ name: 'br0', mac: '02:42:00:00:00:01', mtu: 1400, up: true }));
  });
  const opened = route!;
  return {
    route: opened,
    bridge: getLink(opened, 'br0').index,
    [Symbol.dispose]() {
      opened[Symbol.dispose]();
      closeSync(netns);
    },
  };
}

test('a new namespace is another one, and the thread is back afterwards', () => {
  const before = here();

  const netns = newNetns();

  const inside = withNetns(netns, here);
  closeSync(netns);
  assert.notEqual(inside, before);
  assert.equal(here(), before);
});

test('the thread comes back when the work inside fails', () => {
  const before = here();
  const netns = newNetns();

  assert.throws(() => withNetns(netns, () => assert.fail('inside')), /inside/);
  assert.throws(() => newNetns(() => assert.fail('preparing')), /preparing/);

  closeSync(netns);
  assert.equal(here(), before);
});

test('a descriptor of anything but a namespace is refused', () => {
  assert.throws(() => withNetns(0, () => undefined), { name: 'SystemError', syscall: 'setns', code: 'EINVAL' });
});

test('a bridge is made as asked', () => {
  using there = bridged();

  const link = getLink(there.route, 'br0');

  const { name, mac, mtu, kind, up } = link;
  assert.deepEqual(
    { name, mac, mtu, kind, up },
    { name: 'br0', mac: '02:42:00:00:00:01', mtu: 1400, kind: 'bridge', up: true },
  );
});

test('a veth pair has one end on the bridge and the other in another namespace', () => {
  using there = bridged();
  const netns = newNetns();

  there.route.apply(
    createVeth({
      name: 'v0',
      master: there.bridge,
      mtu: 1400,
      up: true,
      peer: { name: 'eth0', netns, mac: '02:00:00:00:00:05' },
    }),
  );

  const port = getLink(there.route, 'v0');
  const peer = withNetns(netns, () => {
    using route = new Netlink();
    return getLink(route, 'eth0');
  });
  closeSync(netns);
  assert.deepEqual([port.master, port.kind, port.up, port.mtu], [there.bridge, 'veth', true, 1400]);
  assert.deepEqual([peer.mac, peer.mtu, peer.up], ['02:00:00:00:00:05', 1400, false]);
});

test('a change of a link touches the given fields only', () => {
  using there = bridged();
  there.route.apply(createVeth({ name: 'v0', peer: { name: 'v1' } }));
  const { index, mac } = getLink(there.route, 'v0');

  there.route.apply(changeLink(index, { mtu: 1300, alias: 'mine', master: there.bridge }));
  there.route.apply(changeLink(index, { name: 'v9', up: true, hairpin: true }));

  const link = getLink(there.route, index);
  assert.deepEqual(
    [link.name, link.mtu, link.alias, link.master, link.up, link.mac],
    ['v9', 1300, 'mine', there.bridge, true, mac],
  );
});

test('a link and its peer are gone after the deletion', () => {
  using there = bridged();
  there.route.apply(createVeth({ name: 'v0', peer: { name: 'v1' } }));

  there.route.apply(deleteLink(getLink(there.route, 'v0').index));

  assert.deepEqual(
    listLinks(there.route).filter(({ kind }) => kind === 'veth'),
    [],
  );
  assert.throws(() => getLink(there.route, 'v1'), { code: 'ENODEV', message: 'RTM_GETLINK("v1"): ENODEV' });
});

test('many links are removed together, and no other', () => {
  using host = bridged();
  const names = Array.from({ length: 120 }, (_, n) => `many${n}`);
  host.route.apply(...names.map((name) => createBridge({ name, mac: '02:42:00:00:00:01' })));
  const indexes = listLinks(host.route).flatMap(({ name, index }) => (names.includes(name) ? [index] : []));
  assert.equal(indexes.length, 120);

  host.route.apply(...deleteLinks(indexes.slice(1)));
  host.route.apply(...deleteLinks(indexes.slice(0, 1)), ...deleteLinks([]));

  assert.deepEqual(
    listLinks(host.route).map(({ name }) => name),
    ['lo', 'br0'],
  );
  assert.throws(() => host.route.apply(...deleteLinks([indexes[0]!, indexes[1]!])), { code: 'ENODEV' });
});

test('counters count the bytes and packets of a link', () => {
  const netns = newNetns();

  const { before, after } = withNetns(netns, () => {
    using route = new Netlink();
    route.apply(changeLink(1, { up: true }));
    const before = getLink(route, 'lo').counters;
    using _listening = reservePort('tcp', '127.0.0.1', 4000);
    route.apply(addAddress({ link: 1, ip: '10.0.0.1', prefixLength: 32 }));
    // The kernel's own table of the same numbers.
    return { before, after: readFileSync('/proc/thread-self/net/dev', 'utf8') };
  });
  closeSync(netns);

  const lo = /lo:\s*(\d+)\s+(\d+)/.exec(after);
  assert.deepEqual([before.rxBytes, before.rxPackets], [BigInt(lo![1]!), BigInt(lo![2]!)]);
});

test('addresses and routes are added, listed and deleted', () => {
  using there = bridged();
  const link = there.bridge;
  const route = { destination: '10.2.0.0', prefixLength: 16, gateway: '10.1.0.9', link };
  const direct = { destination: '10.1.0.0', prefixLength: 24, gateway: undefined, link };

  there.route.apply(addAddress({ link, ip: '10.1.0.1', prefixLength: 24 }), addRoute(route));

  assert.deepEqual(listAddresses(there.route), [{ link, ip: '10.1.0.1', prefixLength: 24 }]);
  assert.deepEqual(listRoutes(there.route), [direct, route]);
  there.route.apply(deleteRoute(route));
  assert.deepEqual(listRoutes(there.route), [direct]);
  there.route.apply(deleteAddress({ link, ip: '10.1.0.1', prefixLength: 24 }));
  assert.deepEqual(listAddresses(there.route), []);
});

test('neighbours are known, replaced and forgotten', () => {
  using there = bridged();
  // A link with a carrier: the kernel forgets the neighbours of one that loses it, and a bridge without ports does.
  there.route.apply(createVeth({ name: 'v0', up: true, peer: { name: 'v1' } }));
  there.route.apply(changeLink(getLink(there.route, 'v1').index, { up: true }));
  const link = getLink(there.route, 'v0').index;
  const entry = { link, ip: '10.1.0.2', mac: '02:00:00:00:00:02' };

  there.route.apply(addNeighbour({ ...entry, mac: '02:00:00:00:00:03' }), addNeighbour(entry));

  // The kernel adds entries of its own for the multicast groups that it joins.
  const known = (): unknown[] => listNeighbours(there.route).filter(({ ip }) => !ip.startsWith('224.'));
  assert.deepEqual(known(), [entry]);
  there.route.apply(deleteNeighbour(entry));
  assert.deepEqual(known(), []);
});

test('a pinned hardware address moves to the port that pins it next', () => {
  using there = bridged();
  for (const name of ['p0', 'p1'])
    there.route.apply(createVeth({ name, master: there.bridge, up: true, peer: { name: `${name}x` } }));
  const [first, second] = [getLink(there.route, 'p0').index, getLink(there.route, 'p1').index];
  const mac = '02:42:ac:11:00:02';

  there.route.apply(pinToPort(first, mac));
  const before = listPinned(there.route).filter((entry) => entry.mac === mac);
  there.route.apply(pinToPort(second, mac));

  assert.deepEqual(before, [{ port: first, mac }]);
  assert.deepEqual(
    listPinned(there.route).filter((entry) => entry.mac === mac),
    [{ port: second, mac }],
  );
});

test('of several changes the first refused one is thrown, with the kernel’s sentence', () => {
  using there = bridged();

  assert.throws(
    () =>
      there.route.apply(
        addAddress({ link: there.bridge, ip: '10.1.0.1', prefixLength: 24 }),
        addRoute({ destination: '0.0.0.0', prefixLength: 0, gateway: '9.9.9.9' }),
        addAddress({ link: 999, ip: '10.1.0.2', prefixLength: 24 }),
      ),
    {
      name: 'SystemError',
      code: 'ENETUNREACH',
      message: /^RTM_NEWROUTE\(.*\): ENETUNREACH: Nexthop has invalid gateway$/,
    },
  );
  assert.equal(listAddresses(there.route).length, 1);
});

test('a listing of five hundred links is complete', () => {
  using there = bridged();

  there.route.apply(...Array.from({ length: 250 }, (_, n) => createVeth({ name: `v${n}`, peer: { name: `w${n}` } })));

  assert.equal(listLinks(there.route).filter(({ kind }) => kind === 'veth').length, 500);
});

test('nft commands take effect together or not at all', () => {
  using nft = new Nftables();
  nft.run('add table ip t; add set ip t s { type inet_service; }');

  assert.throws(() => nft.run('add element ip t s { 1 }\nadd element ip t nothing { 2 }'), {
    name: 'NftError',
    code: 'ENOENT',
  });

  assert.doesNotMatch(nft.run('list set ip t s'), /elem/);
  nft.run('add element ip t s { 1 }');
  assert.match(nft.run('list set ip t s'), /"elem": \[1\]/);
  nft.run('delete table ip t');
});

test('the listing of a missing object is undefined, and bad syntax an error', () => {
  using nft = new Nftables();

  assert.equal(nft.list('list table ip nothing'), undefined);
  assert.throws(() => nft.run('add tabel x'), { name: 'NftError', code: '' });
});

test('the generation of the rules rises with a change and stays without', () => {
  using nft = new Nftables();
  using netfilter = new Netlink('netfilter');
  const first = ruleGeneration(netfilter);
  const same = ruleGeneration(netfilter);

  nft.run('add table ip g');

  assert.equal(same, first);
  assert.equal(ruleGeneration(netfilter), first + 1);
  nft.run('delete table ip g');
});

test('a socket of a namespace works there, wherever the thread is', () => {
  using there = bridged();

  const names = listLinks(there.route).map(({ name }) => name);

  assert.deepEqual(names, ['lo', 'br0']);
});

test('a reserved port cannot be had twice, and is free afterwards', () => {
  using route = new Netlink();
  route.apply(changeLink(1, { up: true }));
  for (const protocol of ['tcp', 'udp'] as const) {
    const held = reservePort(protocol, '127.0.0.1', 5000);

    assert.throws(() => reservePort(protocol, '0.0.0.0', 5000), { code: 'EADDRINUSE' });
    assert.throws(() => reservePort(protocol, '10.77.0.1', 5000), { code: 'EADDRNOTAVAIL' });

    held[Symbol.dispose]();
    reservePort(protocol, '0.0.0.0', 5000)[Symbol.dispose]();
  }
});
