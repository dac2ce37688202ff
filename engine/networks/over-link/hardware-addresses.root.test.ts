import assert from 'node:assert/strict';
import { closeSync } from 'node:fs';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { newNetns, unshare, withNetns } from '../../host/namespaces.ts';
import { changeLink, createMacvlan, createVeth, getLink } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import { systemClock } from '../../lib/clock.ts';
import { Background } from '../../lib/concurrency/background.ts';
import { bringUp, HardwareAddresses } from './hardware-addresses.ts';

// This thread leaves the machine's network for good: nothing here can touch a real link.
unshare('net');

const MAC = '02:42:00:00:00:99';

test('a link has a temporary hardware address until the one that it should have is given back', async () => {
  using route = new Netlink();
  route.apply(createVeth({ name: 'parent', up: true, peer: { name: 'other' } }));
  const parent = getLink(route, 'parent').index;
  const failures: string[] = [];
  const background = new Background(systemClock, { error: (_details, message) => void failures.push(message) });
  const addresses = new HardwareAddresses(background);
  const linkIn = (netns: number): { inside: Netlink; index: number } => {
    route.apply(createMacvlan({ name: 'eth0', parent, mode: 'bridge', mac: MAC, netns }));
    const inside = withNetns(netns, () => new Netlink());
    const { index } = getLink(inside, 'eth0');
    bringUp(inside, index);
    addresses.settle(netns, index, MAC);
    return { inside, index };
  };
  const [earlier, later] = [newNetns(), newNetns()];
  const first = linkIn(earlier);
  const second = linkIn(later);
  const shown = (): string => getLink(second.inside, 'eth0').mac;
  const before = shown();
  // A change of the parent that frees nothing.
  route.apply(changeLink(parent, { alias: 'changed' }));
  await setTimeout(50);
  const between = shown();

  first.inside[Symbol.dispose]();
  closeSync(earlier);

  const until = Date.now() + 60_000;
  while (shown() !== MAC && Date.now() < until) await setTimeout(5);
  assert.equal(shown(), MAC);
  assert.notEqual(before, MAC);
  assert.equal(between, before);
  assert.deepEqual(failures, []);
  second.inside[Symbol.dispose]();
  closeSync(later);
});
