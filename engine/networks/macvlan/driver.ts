import { closeSync, openSync } from 'node:fs';

import { withNetns } from '../../host/namespaces.ts';
import { listAddresses } from '../../host/network/addresses.ts';
import { LinkRemoval } from '../../host/network/link-removal.ts';
import { createMacvlan, deleteLink, getLink } from '../../host/network/links.ts';
import { Netlink } from '../../host/network/netlink.ts';
import type { Background } from '../../lib/background.ts';
import { EngineError } from '../../lib/errors.ts';
import { storedAddresses } from '../addresses/choose.ts';
import { PlaceLeases } from '../addresses/place-leases.ts';
import type { NetworkDriver, WantedPlace } from '../drivers/driver.ts';
import { addressesOf, type Endpoint, type Place } from '../endpoints/endpoint.ts';
import {
  addressing,
  announceAddresses,
  dropAddresses,
  enableIPv6,
  freeInterfaceName,
  needsIPv6,
} from '../endpoints/interfaces.ts';
import { userNetns } from '../endpoints/namespace.ts';
import type { NetworkRecord } from '../store.ts';
import { bringUp, HardwareAddresses } from './hardware-addresses.ts';
import { ensureParent, isOwnParent } from './parent-link.ts';
import { macvlanSettings, ownParentName } from './settings.ts';

type Parts = Readonly<{
  dataRoot: string;
  background: Background;
  /** The networks of all drivers. */
  networks: () => readonly NetworkRecord[];
  endpointsIn: (networkId: string) => readonly Endpoint[];
  /** The record with the addresses that are chosen for a new network. */
  addressed: (network: NetworkRecord) => NetworkRecord;
}>;

/**
 * The driver `macvlan`: containers have links of their own over a parent link of the machine, and look like machines in
 * its network. They have no rules and no published ports, and the machine itself cannot reach them.
 */
export function macvlanDriver(parts: Parts): NetworkDriver {
  const leases = new Map<string, PlaceLeases>();
  const hardwareAddresses = new HardwareAddresses(parts.background);
  const leasesOf = (network: NetworkRecord): PlaceLeases => {
    const known = leases.get(network.id);
    if (known !== undefined) return known;
    const used = parts.endpointsIn(network.id).flatMap(addressesOf);
    const made = new PlaceLeases(storedAddresses(network), used);
    leases.set(network.id, made);
    return made;
  };
  const place = (network: NetworkRecord, wanted: WantedPlace, netns: number, leadsOut: boolean): Place => {
    using undo = new DisposableStack();
    const lease = leasesOf(network).take(wanted, undo);
    const link = addLink({ ...parts, hardwareAddresses }, network, lease, { netns, leadsOut, ...wanted });
    undo.move();
    return { ...lease, link };
  };
  return {
    name: 'macvlan',
    create: (network) => {
      const { parent } = macvlanSettings(network);
      const complete = parts.addressed(network);
      refuseSharedParent(parts, network, parent);
      using route = new Netlink();
      ensureParent(route, macvlanSettings(network), parts.dataRoot);
      return complete;
    },
    remove: (network) => {
      leases.delete(network.id);
      removeParent(parts, macvlanSettings(network).parent);
    },
    // After a restart of the machine it is missing.
    prepare: async (network) => {
      using route = new Netlink();
      ensureParent(route, macvlanSettings(network), parts.dataRoot);
      await Promise.resolve();
    },
    join: (network, wanted) => {
      using undo = new DisposableStack();
      const netns = userNetns();
      undo.defer(() => closeSync(netns));
      const placed = place(network, wanted, netns, leadsOut(network));
      undo.move();
      return { netns, place: placed };
    },
    joinInto: (network, wanted, { netns }) => place(network, wanted, netns, false),
    leave: (network, left, within) => {
      if (within !== undefined) dropLink(parts, left, within.netns);
      leases.get(network.id)?.release(left);
    },
    leadsOut,
    options: ({ custom }) => ({ ...custom?.options }),
  };
}

function leadsOut(network: NetworkRecord): boolean {
  return !macvlanSettings(network).isInternal;
}

function refuseSharedParent({ networks }: Parts, { id }: NetworkRecord, parent: string): void {
  const others = networks().filter((other) => other.driver === 'macvlan' && other.id !== id);
  const other = others.find((one) => macvlanSettings(one).parent === parent);
  if (other === undefined) return;
  const name = ownParentName(other.id);
  throw new EngineError('failed', `network ${name} is already using parent interface ${parent}`);
}

/** Makes an endpoint's link in its namespace. Returns its name there. */
function addLink(
  { dataRoot, hardwareAddresses }: Parts & { hardwareAddresses: HardwareAddresses },
  network: NetworkRecord,
  lease: Omit<Place, 'link'>,
  wanted: WantedPlace & { netns: number; leadsOut: boolean },
): string {
  const { netns } = wanted;
  const settings = macvlanSettings(network);
  using route = new Netlink();
  using inside = withNetns(netns, () => new Netlink());
  const name = freeInterfaceName(inside);
  const parent = ensureParent(route, settings, dataRoot);
  const { mode, mtu } = settings;
  route.apply(createMacvlan({ name, parent, mode, mac: lease.macAddress, netns, ...(mtu > 0 && { mtu }) }));
  const { index } = getLink(inside, name);
  try {
    withNetns(netns, () => {
      announceAddresses(name);
      if (needsIPv6(lease, wanted)) enableIPv6(name);
    });
    bringUp(inside, index);
    inside.apply(...addressing(index, { ...lease, link: name }, wanted));
    hardwareAddresses.settle(netns, index, lease.macAddress);
  } catch (error) {
    inside.apply(deleteLink(index));
    throw error;
  }
  return name;
}

/** Removes an endpoint's link from a namespace that stays: its address at once, the link in the background. */
function dropLink({ background }: Parts, place: Place, netns: number): void {
  using inside = withNetns(netns, () => new Netlink());
  const link = listAddresses(inside).find(({ ip }) => ip === place.ipAddress)?.link;
  dropAddresses(inside, place);
  if (link === undefined) return;
  const held = openSync(`/proc/self/fd/${netns}`, 'r');
  background.run('remove a link', { link: place.link }, async () => {
    try {
      using there = withNetns(held, () => new Netlink());
      await there.applyInBackground(deleteLink(link));
    } finally {
      closeSync(held);
    }
  });
}

/** Removes a parent that was made for the network; links of the machine stay. */
function removeParent({ dataRoot, background }: Parts, parent: string): void {
  using route = new Netlink();
  if (!isOwnParent(route, parent, dataRoot)) return;
  background.run('remove a link', { link: parent }, async () => {
    const removal = new LinkRemoval();
    await removal.remove(parent);
  });
}
