import assert from 'node:assert/strict';
import { test } from 'node:test';

import { unshare } from '../../host/namespaces.ts';
import { addAddress, addRoute, listRoutes } from '../../host/network/addresses.ts';
import { changeLink, createBridge, deleteLink, getLink } from '../../host/network/links.ts';
import { Netlink, type Message } from '../../host/network/netlink.ts';
import { setDefaultRoute } from './interfaces.ts';

// This thread leaves the machine's network for good: nothing here can touch a real link.
unshare('net');

/** A link is removed right before the first change, as by the thread that removes links in the background. */
class LateNetlink extends Netlink {
  #link: number | undefined;

  constructor(link: number) {
    super();
    this.#link = link;
  }

  override apply(...messages: readonly Message[]): void {
    if (this.#link !== undefined) super.apply(deleteLink(this.#link));
    this.#link = undefined;
    super.apply(...messages);
  }
}

function addBridge(route: Netlink, name: string, ip: string, prefixLength: number): number {
  route.apply(createBridge({ name, mac: '02:42:00:00:00:01', up: true }));
  const link = getLink(route, name).index;
  route.apply(changeLink(link, { up: true }), addAddress({ link, ip, prefixLength }));
  return link;
}

for (const [family, destination, first, second, prefixLength] of [
  [4, '0.0.0.0', '10.1.0', '10.2.0', 24],
  [6, '::', 'fd00:1:', 'fd00:2:', 64],
] as const) {
  const dot = family === 4 ? '.' : ':';
  test(`a default route of IPv${family} is replaced while its link goes away`, () => {
    using route = new Netlink();
    const old = addBridge(route, `old${family}`, `${first}${dot}2`, prefixLength);
    addBridge(route, `new${family}`, `${second}${dot}2`, prefixLength);
    route.apply(addRoute({ destination, prefixLength: 0, gateway: `${first}${dot}1` }));
    using late = new LateNetlink(old);

    setDefaultRoute(late, family, { gateway: `${second}${dot}1` });

    const left = listRoutes(route, family).filter((one) => one.prefixLength === 0);
    assert.deepEqual(
      left.map(({ gateway }) => gateway),
      [`${second}${dot}1`],
    );
  });
}
