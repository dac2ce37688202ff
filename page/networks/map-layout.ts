import type { Summary } from '@gantry/client/containers.ts';
import type { NetworkWire } from '@gantry/client/networks.ts';

import { nameOf } from '../containers/names.ts';

/** Pixels, as `look/networks.css` has them. */
export const NETWORK_HEIGHT = 46;
const CONTAINER_HEIGHT = 46;
const ADDRESS_HEIGHT = 19;
const GAP = 10;

type Address = Readonly<{ network: string; addresses: readonly string[] }>;
type Place = Readonly<{ top: number; height: number }>;
export type MapNetwork = Place & Readonly<{ network: NetworkWire; members: number }>;
export type MapContainer = Place & Readonly<{ container: Summary; name: string; networks: readonly Address[] }>;
export type NetworkMap = Readonly<{
  networks: readonly MapNetwork[];
  containers: readonly MapContainer[];
  /** From the middle of a network to that of a container. */
  lines: readonly Readonly<{ key: string; from: number; to: number }>[];
  height: number;
}>;

/**
 * Places networks that have containers on the left, and their containers on the right, those of one network beside each
 * other. A network is level with its containers where the one above leaves room.
 */
export function layoutMap(all: readonly NetworkWire[], running: readonly Summary[]): NetworkMap {
  const order = new Map(all.map(({ Name }, index) => [Name, index]));
  const members = running
    .map((container) => ({ container, name: nameOf(container), networks: addressesOf(container, order) }))
    .filter(({ networks }) => networks.length > 0)
    .toSorted((one, other) => firstOf(one, order) - firstOf(other, order) || one.name.localeCompare(other.name));
  const containers = below(members, ({ networks }) => CONTAINER_HEIGHT + ADDRESS_HEIGHT * networks.length);
  const networks = placeNetworks(all, containers);
  const middles = new Map(networks.map((one) => [one.network.Name, middleOf(one)]));
  const lines = containers.flatMap((one) =>
    one.networks.map(({ network }) => ({
      key: `${one.container.Id} ${network}`,
      from: middles.get(network)!,
      to: middleOf(one),
    })),
  );
  return { networks, containers, lines, height: Math.max(endOf(containers), endOf(networks)) };
}

function placeNetworks(all: readonly NetworkWire[], containers: readonly MapContainer[]): MapNetwork[] {
  let free = 0;
  return all.flatMap((network) => {
    const middles = containers
      .filter(({ networks }) => networks.some((one) => one.network === network.Name))
      .map(middleOf);
    if (middles.length === 0) return [];
    const wanted = middles.reduce((sum, one) => sum + one, 0) / middles.length - NETWORK_HEIGHT / 2;
    const top = Math.max(free, wanted);
    free = top + NETWORK_HEIGHT + GAP;
    return [{ network, members: middles.length, top, height: NETWORK_HEIGHT }];
  });
}

/** The networks of a container in the order of all networks; a network that was removed meanwhile is left out. */
function addressesOf({ NetworkSettings }: Summary, order: ReadonlyMap<string, number>): Address[] {
  return Object.entries(NetworkSettings.Networks)
    .filter(([network]) => order.has(network) && network !== 'none')
    .map(([network, { IPAddress, GlobalIPv6Address }]) => ({
      network,
      addresses: [IPAddress, GlobalIPv6Address].filter((one) => one !== ''),
    }))
    .toSorted((one, other) => order.get(one.network)! - order.get(other.network)!);
}

function firstOf({ networks }: { networks: readonly Address[] }, order: ReadonlyMap<string, number>): number {
  return order.get(networks[0]!.network)!;
}

function below<T>(list: readonly T[], heightOf: (one: T) => number): (T & Place)[] {
  let top = 0;
  return list.map((one) => {
    const placed = { ...one, top, height: heightOf(one) };
    top += placed.height + GAP;
    return placed;
  });
}

function middleOf({ top, height }: Place): number {
  return top + height / 2;
}

function endOf(places: readonly Place[]): number {
  const last = places.at(-1);
  return last === undefined ? 0 : last.top + last.height;
}
