import { randomInt } from 'node:crypto';

import { hasCode } from '../../lib/errors.ts';
import {
  attribute,
  nestAttributes,
  NLM_F,
  readAttributes,
  readText,
  text,
  u16,
  u32,
  type Message,
  type Netlink,
} from './netlink.ts';

const RTM = { newLink: 16, deleteLink: 17, getLink: 18 } as const;
const IFLA = {
  address: 1,
  name: 3,
  mtu: 4,
  link: 5,
  master: 10,
  linkInfo: 18,
  alias: 20,
  stats64: 23,
  group: 27,
  netnsFd: 28,
  carrier: 33,
} as const;
const IFLA_INFO_KIND = 1;
const IFLA_INFO_DATA = 2;
const IFLA_INFO_SLAVE_KIND = 4;
const IFLA_INFO_SLAVE_DATA = 5;
const IFLA_BRPORT_STATE = 1;
const BR_STATE_DISABLED = 0;
const IFLA_BRPORT_MODE = 4;
const IFLA_BRPORT_ISOLATED = 33;
const IFLA_BR_FDB_MAX_LEARNED = 49;
const VETH_INFO_PEER = 1;
const IFLA_MACVLAN_MODE = 1;
const IFLA_IPVLAN_MODE = 1;
const IFLA_VLAN_ID = 1;
const IFF_UP = 1;
const IFF_RUNNING = 64;
const HEADER_BYTES = 16;
/** Groups that people choose by hand are small numbers. */
const [GROUPS_FROM, GROUPS_TO] = [2 ** 30, 2 ** 31];

export type Counters = Readonly<{
  rxPackets: bigint;
  txPackets: bigint;
  rxBytes: bigint;
  txBytes: bigint;
  rxErrors: bigint;
  txErrors: bigint;
  rxDropped: bigint;
  txDropped: bigint;
}>;

export type Link = Readonly<{
  index: number;
  name: string;
  mac: string;
  mtu: number;
  /** Index of the bridge that it is a port of; 0: none. */
  master: number;
  /** Such as `bridge` or `veth`; empty for hardware and loopback. */
  kind: string;
  alias: string;
  up: boolean;
  /** It is up and so is what it leads to: before, what is sent is lost. */
  isRunning: boolean;
  /** Whether the other end is up; `isRunning` follows when the kernel gets to it. */
  hasCarrier: boolean;
  /** Index of the other end, or of the link beneath, in whatever namespace that is; 0: none. */
  other: number;
  /** A port that its bridge does not use, as it is not running or has not been seen to. */
  isUnusedPort: boolean;
  counters: Counters;
}>;

/** All links of the socket's namespace. */
export function listLinks(route: Netlink): Link[] {
  return route.query(linkMessage(RTM.getLink, { flags: NLM_F.dump }, 'RTM_GETLINK', [])).map(readLink);
}

/** One link, by name or index. Throws `ENODEV` for a missing one. */
export function getLink(route: Netlink, which: string | number): Link {
  const head = typeof which === 'number' ? { index: which } : {};
  const parts = typeof which === 'string' ? [attribute(IFLA.name, text(which))] : [];
  const [answer] = route.query(linkMessage(RTM.getLink, head, 'RTM_GETLINK', [which], parts));
  return readLink(answer!);
}

/** Like `getLink`, but undefined for a missing link. */
export function findLink(route: Netlink, name: string): Link | undefined {
  try {
    return getLink(route, name);
  } catch (error) {
    if (hasCode(error, 'ENODEV')) return undefined;
    throw error;
  }
}

/** Hardware addresses that a bridge learns; a container could send millions of them, each of which costs the kernel memory. */
const MAX_LEARNED_ADDRESSES = 16_384;

/** A bridge without spanning tree, so that its ports forward at once. Kernels before 6.7 know no limit of addresses. */
export function createBridge(bridge: { name: string; mac: string; mtu?: number; up?: boolean }): Message {
  const parts = [
    attribute(IFLA.name, text(bridge.name)),
    attribute(IFLA.address, macBytes(bridge.mac)),
    nestAttributes(
      IFLA.linkInfo,
      attribute(IFLA_INFO_KIND, text('bridge')),
      nestAttributes(IFLA_INFO_DATA, attribute(IFLA_BR_FDB_MAX_LEARNED, u32(MAX_LEARNED_ADDRESSES))),
    ),
  ];
  if (bridge.mtu !== undefined) parts.push(attribute(IFLA.mtu, u32(bridge.mtu)));
  return linkMessage(RTM.newLink, { flags: CREATE, up: bridge.up }, 'RTM_NEWLINK', ['bridge', bridge.name], parts);
}

type VethPair = Readonly<{
  name: string;
  /** Index of the bridge that this end becomes a port of. */
  master?: number;
  mtu?: number;
  up?: boolean;
  peer: Readonly<{ name: string; mac?: string; netns?: number }>;
}>;

/**
 * Creates a veth pair; the peer is created in `peer.netns`, an open descriptor. `up` applies to the first end: the
 * kernel refuses to bring up the peer before both exist.
 */
export function createVeth({ name, master, mtu, up, peer }: VethPair): Message {
  const size = mtu === undefined ? [] : [attribute(IFLA.mtu, u32(mtu))];
  const peerParts = [header({}), attribute(IFLA.name, text(peer.name)), ...size];
  if (peer.mac !== undefined) peerParts.push(attribute(IFLA.address, macBytes(peer.mac)));
  if (peer.netns !== undefined) peerParts.push(attribute(IFLA.netnsFd, u32(peer.netns)));
  const parts = [
    attribute(IFLA.name, text(name)),
    ...size,
    nestAttributes(
      IFLA.linkInfo,
      attribute(IFLA_INFO_KIND, text('veth')),
      nestAttributes(IFLA_INFO_DATA, nestAttributes(VETH_INFO_PEER, ...peerParts)),
    ),
  ];
  if (master !== undefined) parts.push(attribute(IFLA.master, u32(master)));
  return linkMessage(RTM.newLink, { flags: CREATE, up }, 'RTM_NEWLINK', ['veth', name, peer], parts);
}

/** Traffic between links over one parent. */
export const MACVLAN_MODES = { private: 1, vepa: 2, bridge: 4, passthru: 8 } as const;
/** The layer at which links over one parent are joined. */
export const IPVLAN_MODES = { l2: 0, l3: 1 } as const;

type OverLink = Readonly<{
  name: string;
  /** Index of the link beneath. */
  parent: number;
  /** An open descriptor of the namespace that it is made in. */
  netns: number;
}>;

/** A link with a hardware address of its own, whose packets are carried by another link. */
export function createMacvlan({
  mode,
  mac,
  mtu,
  ...link
}: OverLink & Readonly<{ mode: keyof typeof MACVLAN_MODES; mac: string; mtu?: number }>): Message {
  const more = [
    attribute(IFLA.address, macBytes(mac)),
    attribute(IFLA.netnsFd, u32(link.netns)),
    ...(mtu === undefined ? [] : [attribute(IFLA.mtu, u32(mtu))]),
  ];
  return createOver('macvlan', link, attribute(IFLA_MACVLAN_MODE, u32(MACVLAN_MODES[mode])), more);
}

/** Like `createMacvlan`, with the hardware address of the other link. */
export function createIpvlan({ mode, ...link }: OverLink & Readonly<{ mode: keyof typeof IPVLAN_MODES }>): Message {
  const more = [attribute(IFLA.netnsFd, u32(link.netns))];
  return createOver('ipvlan', link, attribute(IFLA_IPVLAN_MODE, u16(IPVLAN_MODES[mode])), more);
}

/** A link for the packets of one VLAN on another link. */
export function createVlan({ id, ...link }: Omit<OverLink, 'netns'> & Readonly<{ id: number }>): Message {
  return createOver('vlan', link, attribute(IFLA_VLAN_ID, u16(id)));
}

function createOver(
  kind: string,
  { name, parent }: Omit<OverLink, 'netns'>,
  setting: Buffer,
  more: readonly Buffer[] = [],
): Message {
  const parts = [
    attribute(IFLA.name, text(name)),
    attribute(IFLA.link, u32(parent)),
    ...more,
    nestAttributes(IFLA.linkInfo, attribute(IFLA_INFO_KIND, text(kind)), nestAttributes(IFLA_INFO_DATA, setting)),
  ];
  return linkMessage(RTM.newLink, { flags: CREATE }, 'RTM_NEWLINK', [kind, name, parent], parts);
}

type LinkChange = Readonly<{
  up?: boolean;
  mac?: string;
  mtu?: number;
  /** 0 removes the link from its bridge. */
  master?: number;
  alias?: string;
  name?: string;
  /** For a port of a bridge: whether packets may leave by the port they came in. */
  hairpin?: boolean;
  /** For a port of a bridge: whether it exchanges packets with the bridge alone, not with other such ports. */
  isolated?: boolean;
  /** Moves the link into another namespace. */
  netns?: number;
}>;

/** Changes the given properties and keeps the others. */
export function changeLink(index: number, change: LinkChange): Message {
  const parts: Buffer[] = [];
  if (change.name !== undefined) parts.push(attribute(IFLA.name, text(change.name)));
  if (change.mac !== undefined) parts.push(attribute(IFLA.address, macBytes(change.mac)));
  if (change.mtu !== undefined) parts.push(attribute(IFLA.mtu, u32(change.mtu)));
  if (change.master !== undefined) parts.push(attribute(IFLA.master, u32(change.master)));
  if (change.alias !== undefined) parts.push(attribute(IFLA.alias, text(change.alias)));
  const ofPort = [...flag(IFLA_BRPORT_MODE, change.hairpin), ...flag(IFLA_BRPORT_ISOLATED, change.isolated)];
  if (ofPort.length > 0) {
    const kind = attribute(IFLA_INFO_SLAVE_KIND, text('bridge'));
    parts.push(nestAttributes(IFLA.linkInfo, kind, nestAttributes(IFLA_INFO_SLAVE_DATA, ...ofPort)));
  }
  if (change.netns !== undefined) parts.push(attribute(IFLA.netnsFd, u32(change.netns)));
  return linkMessage(RTM.newLink, { index, up: change.up }, 'RTM_NEWLINK', [index, change], parts);
}

function flag(attributeType: number, value: boolean | undefined): Buffer[] {
  return value === undefined ? [] : [attribute(attributeType, Buffer.from([value ? 1 : 0]))];
}

/** Removes a link. For a veth the kernel blocks the caller for some 15 ms: drop its namespace instead. */
export function deleteLink(index: number): Message {
  return linkMessage(RTM.deleteLink, { index }, 'RTM_DELLINK', [index]);
}

/** The kernel holds up all other changes of links while it removes a group: 20 ms for each bridge. */
const REMOVED_AT_ONCE = 16;

/**
 * Removes many links. They become groups, for each of which the kernel waits once instead of once for each link: 200
 * bridges take 4 s instead of 8. The number of a group is random; 0 is that of all other links.
 */
export function deleteLinks(indexes: readonly number[]): Message[] {
  if (indexes.length < 2) return indexes.map(deleteLink);
  const [now, later] = [indexes.slice(0, REMOVED_AT_ONCE), indexes.slice(REMOVED_AT_ONCE)];
  const group = attribute(IFLA.group, u32(randomInt(GROUPS_FROM, GROUPS_TO)));
  return [
    ...now.map((index) => linkMessage(RTM.newLink, { index }, 'RTM_NEWLINK', [index, 'group'], [group])),
    linkMessage(RTM.deleteLink, {}, 'RTM_DELLINK', [now.length], [group]),
    ...deleteLinks(later),
  ];
}

export function macBytes(mac: string): Buffer {
  return Buffer.from(mac.replaceAll(':', ''), 'hex');
}

export function macText(bytes: Buffer): string {
  return bytes.toString('hex').replaceAll(/(..)(?!$)/g, '$1:');
}

const CREATE = NLM_F.create | NLM_F.exclusive;

type Head = { index?: number; flags?: number; up?: boolean };

function linkMessage(
  type: number,
  head: Head,
  call: string,
  values: readonly unknown[],
  parts: readonly Buffer[] = [],
): Message {
  return { type, flags: head.flags ?? 0, body: Buffer.concat([header(head), ...parts]), call, values };
}

function header({ index = 0, up }: Head): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES);
  bytes.writeInt32LE(index, 4);
  if (up !== undefined) {
    bytes.writeUInt32LE(up ? IFF_UP : 0, 8);
    bytes.writeUInt32LE(IFF_UP, 12);
  }
  return bytes;
}

function readLink(body: Buffer): Link {
  const found = readAttributes(body, HEADER_BYTES);
  const info = readAttributes(found.get(IFLA.linkInfo) ?? Buffer.alloc(0));
  const port = readAttributes(info.get(IFLA_INFO_SLAVE_DATA) ?? Buffer.alloc(0));
  const isPort = readText(info.get(IFLA_INFO_SLAVE_KIND)) === 'bridge';
  return {
    index: body.readInt32LE(4),
    name: readText(found.get(IFLA.name)),
    mac: macText(found.get(IFLA.address) ?? Buffer.alloc(0)),
    mtu: found.get(IFLA.mtu)?.readUInt32LE() ?? 0,
    master: found.get(IFLA.master)?.readUInt32LE() ?? 0,
    kind: readText(info.get(IFLA_INFO_KIND)),
    alias: readText(found.get(IFLA.alias)),
    up: (body.readUInt32LE(8) & IFF_UP) !== 0,
    isRunning: (body.readUInt32LE(8) & IFF_RUNNING) !== 0,
    hasCarrier: found.get(IFLA.carrier)?.readUInt8() === 1,
    other: found.get(IFLA.link)?.readUInt32LE() ?? 0,
    isUnusedPort: isPort && port.get(IFLA_BRPORT_STATE)?.readUInt8() === BR_STATE_DISABLED,
    counters: readCounters(found.get(IFLA.stats64)),
  };
}

function readCounters(stats: Buffer | undefined): Counters {
  const at = (position: number): bigint => stats?.readBigUInt64LE(position * 8) ?? 0n;
  return {
    rxPackets: at(0),
    txPackets: at(1),
    rxBytes: at(2),
    txBytes: at(3),
    rxErrors: at(4),
    txErrors: at(5),
    rxDropped: at(6),
    txDropped: at(7),
  };
}
