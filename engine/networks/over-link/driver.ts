import { closeSync, openSync } from 'node:fs';

import { SystemError } from '../../host/libc.ts';
import { withNetns } from '../../host/namespaces.ts';
import { listAddresses } from '../../host/network/addresses.ts';
import { LinkRemoval } from '../../host/network/link-removal.ts';
import { changeLink, deleteLink, getLink } from '../../host/network/links.ts';
import { Netlink, type Message } from '../../host/network/netlink.ts';
import type { Background } from '../../lib/concurrency/background.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { storedAddresses } from '../addresses/choose.ts';
import { PlaceLeases } from '../addresses/place-leases.ts';
import type { Eventually, Joined, NetworkDriver, NewEndpoint, WantedPlace } from '../drivers/driver.ts';
import { addressesOf, type Endpoint, type Place } from '../endpoints/endpoint.ts';
import { applySysctls } from '../endpoints/interface-options.ts';
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
import { ownParentName, type LinkKind, type LinkSettings } from './kind.ts';
import { onceAddressIsFree } from './leaving-links.ts';
import { ensureParent, isOwnParent } from './parent-link.ts';

/** Reasons of the kernel's refusals of a link, in dockerd's words. */
const REASONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    EBUSY: 'device or resource busy',
    EINVAL: 'invalid argument',
    EOPNOTSUPP: 'operation not supported',
  }),
);

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
 * A driver whose containers have links of their own over a parent link of the machine. They have no rules and no
 * published ports, and the machine itself cannot reach them.
 */
export function overLinkDriver(parts: Parts, kind: LinkKind): NetworkDriver {
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
  const place = (network: NetworkRecord, wanted: NewEndpoint, netns: number, leadsOut: boolean): Eventually<Place> => {
    const settings = kind.settings(network);
    refuseHardwareAddress(kind, network, wanted);
    return undoing((undo) => {
      const lease = placeOf(kind, settings, leasesOf(network).take(wanted, undo));
      return addLink({ ...parts, kind, hardwareAddresses }, settings, lease, { netns, leadsOut, ...wanted });
    });
  };
  const leadsOut = (network: NetworkRecord): boolean => !kind.settings(network).isInternal;
  return {
    name: kind.name,
    create: (network) => {
      const settings = kind.settings(network);
      const complete = parts.addressed(network);
      refuseSharedParent(parts, kind, network, settings.parent);
      using route = new Netlink();
      ensureParent(route, kind, settings, parts.dataRoot);
      return complete;
    },
    remove: (network) => {
      leases.delete(network.id);
      removeParent(parts, kind.settings(network).parent);
    },
    // After a restart of the machine it is missing.
    prepare: async (network) => {
      using route = new Netlink();
      ensureParent(route, kind, kind.settings(network), parts.dataRoot);
      await Promise.resolve();
    },
    join: (network, wanted) =>
      undoing((undo) => {
        const netns = userNetns();
        undo.defer(() => closeSync(netns));
        const placed = place(network, wanted, netns, leadsOut(network));
        const joined = (made: Place): Joined => ({ netns, place: made });
        return placed instanceof Promise ? placed.then(joined) : joined(placed);
      }),
    joinInto: (network, wanted, { netns }) => place(network, wanted, netns, false),
    leave: (network, left, within) => {
      if (within !== undefined) dropLink(parts, left, within.netns);
      leases.get(network.id)?.release(left);
    },
    leadsOut,
    options: ({ custom }) => ({ ...custom?.options }),
  };
}

/** The result of the work, at once where that is possible; what it has deferred runs where it fails. */
function undoing<T>(work: (undo: DisposableStack) => Eventually<T>): Eventually<T> {
  using undo = new DisposableStack();
  const result = work(undo);
  const kept = undo.move();
  if (!(result instanceof Promise)) return result;
  return result.catch((error: unknown) => {
    kept[Symbol.dispose]();
    throw error;
  });
}

/** In dockerd's words. */
function refuseHardwareAddress(kind: LinkKind, network: NetworkRecord, { mac, containerName }: NewEndpoint): void {
  if (kind.hasHardwareAddress || mac === undefined || mac === '') return;
  const reason = `${kind.name} interfaces do not support custom mac address assignment`;
  throw new EngineError('failed', `failed to create endpoint ${containerName} on network ${network.name}: ${reason}`);
}

function refuseSharedParent({ networks }: Parts, kind: LinkKind, { id }: NetworkRecord, parent: string): void {
  const others = networks().filter((other) => other.driver === kind.name && other.id !== id);
  const other = others.find((one) => kind.settings(one).parent === parent);
  if (other === undefined) return;
  const name = ownParentName(kind, other.id);
  throw new EngineError('failed', `network ${name} is already using parent interface ${parent}`);
}

type Lease = Omit<Place, 'link'>;

function placeOf({ hasHardwareAddress }: LinkKind, { isWayOut, isInternal }: LinkSettings, lease: Lease): Lease {
  const place = hasHardwareAddress ? lease : { ...lease, macAddress: '' };
  if (!isWayOut) return place;
  const six = place.ipv6 === undefined ? {} : { ipv6: { ...place.ipv6, gateway: '' } };
  return { ...place, ...six, gateway: '', isWayOutItself: !isInternal };
}

type LinkParts = Parts & Readonly<{ kind: LinkKind; hardwareAddresses: HardwareAddresses }>;

/** Makes an endpoint's link in its namespace; later where another link over the parent still has the address. */
function addLink(
  { dataRoot, kind, hardwareAddresses }: LinkParts,
  settings: LinkSettings,
  lease: Lease,
  wanted: WantedPlace & { netns: number; leadsOut: boolean },
): Eventually<Place> {
  const { netns } = wanted;
  using route = new Netlink();
  const parent = ensureParent(route, kind, settings, dataRoot);
  return undoing((undo) => {
    const inside = undo.use(withNetns(netns, () => new Netlink()));
    const name = freeInterfaceName(inside, wanted);
    create(route, kind, settings.create({ name, parent, mac: lease.macAddress, netns }));
    const { index } = getLink(inside, name);
    undo.defer(() => inside.apply(deleteLink(index)));
    withNetns(netns, () => {
      announceAddresses(name);
      if (needsIPv6(lease, wanted)) enableIPv6(name);
    });
    bringUp(inside, index);
    const place = { ...lease, link: name };
    const made = (): Place => {
      if (kind.hasHardwareAddress) hardwareAddresses.settle(netns, index, lease.macAddress);
      applySysctls(netns, name, wanted);
      inside[Symbol.dispose]();
      return place;
    };
    const address = (): void => inside.apply(...addressing(index, place, wanted));
    try {
      address();
    } catch (error) {
      if (kind.hasHardwareAddress || !hasCode(error, 'EADDRINUSE')) throw error;
      const again = (): void => {
        inside.apply(changeLink(index, { up: false })); // takes its routes along
        dropAddresses(inside, place);
        bringUp(inside, index);
        address();
      };
      return onceAddressIsFree(again).then(made);
    }
    return made();
  });
}

/** In dockerd's words, such as for a parent that has links of the other kind. */
function create(route: Netlink, { name }: LinkKind, link: Message): void {
  try {
    route.apply(link);
  } catch (error) {
    const words = error instanceof SystemError ? REASONS.get(error.code) : undefined;
    if (words === undefined) throw error;
    throw new EngineError('failed', `failed to create the ${name} port: ${words}`, { cause: error });
  }
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
