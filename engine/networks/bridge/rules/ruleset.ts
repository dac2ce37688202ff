import type { NftObject } from '../../../host/network/nftables.ts';
import { isSix, type Family } from '../../../lib/notations/ip-address.ts';
import type { Place } from '../../endpoints/endpoint.ts';
import { ANY, ANY_SIX, isOnHost, type PublishedPort } from '../../endpoints/ports.ts';
import type { GatewayModes } from '../../settings/gateway-modes.ts';

export type BridgeRules = Readonly<{
  bridge: string;
  /** Undefined without IPv4. */
  subnet: string | undefined;
  /** Undefined without IPv6. */
  subnet6: string | undefined;
  /** The bridge's own addresses. */
  gateways: readonly string[];
  /** A bridge of the operator: its other ports are not ours to restrict. */
  isForeign: boolean;
  isInternal: boolean;
  allowsTraffic: boolean;
  isMasqueraded: boolean;
  modes: GatewayModes;
  /** Interfaces from which published ports are reached at the containers' own addresses. */
  trusted: readonly string[];
}>;
/** `ipAddress` is of the family of the port's `hostIp`. */
export type Published = Readonly<{ ipAddress: string; port: PublishedPort }>;
/** A port of the machine that its containers do not reach. */
export type ClosedPort = Readonly<{ protocol: 'tcp' | 'udp'; port: number }>;
/** The rules that have to be in force. */
export type RuleState = Readonly<{
  networks: readonly BridgeRules[];
  published: readonly Published[];
  closed: readonly ClosedPort[];
  /** The containers' places, whose addresses nobody else may claim. */
  places: readonly Place[];
}>;

/** The part of the state that is in the tables of the families. */
type Rules = Omit<RuleState, 'places'>;

/** The family in nft's words, for tables and for packet headers. */
export const NFT_FAMILY = { 4: 'ip', 6: 'ip6' } as const;

/**
 * All packet rules of one daemon for one family of addresses as one nft table, written anew in one transaction: a packet
 * meets the old rules or the new ones, never a half. Networks and ports are elements of sets, so the thousandth costs a
 * packet what the first did.
 *
 * - `publish` translates a published port. It serves packets from outside and from containers (`prerouting`) and the
 *   host's own (`output`), there also those to 127.0.0.1: the bridges have route_localnet for that.
 * - route_localnet would open the host's loopback to containers: `loopback` drops what comes from a bridge with such
 *   an address, and nothing that arrives for 127.0.0.0/8 is translated.
 * - A container that reaches a neighbour, or itself, by a published port must see the bridge as its peer, otherwise
 *   the answer would take the short way past the translation.
 * - From outside and from other networks only what was published, or what belongs to a connection of a container, gets
 *   to a container. Of an internal network nothing leaves, and nothing gets in.
 * - Senders: a container speaks under addresses of networks, or under others that the machine has a route to by its bridge.
 *   It could answer in the name of a name server otherwise.
 * - `open` has bridges whose containers are reached from outside with all of their ports, `routed` those whose published
 *   ports are reached at the containers' addresses, without translation. From `trusted` interfaces these are reached too.
 * - Closed ports are those of the cluster. Containers do not send to its tunnels on other machines either: these would take
 *   the packets for those of this machine, whose address they get on their way.
 *
 * The table of IPv6 holds all networks: one without IPv6 is internal there, because any container can write such frames.
 * There is no way out of ::1, so it has nothing to guard there.
 */
export function tableText(family: Family, table: string, { networks, published, closed }: Rules): string {
  const ip = NFT_FAMILY[family];
  return `
add table ${ip} ${table}
delete table ${ip} ${table}
table ${ip} ${table} {
  ${setsText(family, published, closed)}
  chain publish {
    dnat ${ip} to ${ip} daddr . meta l4proto . th dport map @published_at
    dnat ${ip} to meta l4proto . th dport map @published
  }
  ${family === 4 ? LOOPBACK_GUARD : ''}
  chain prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    ${family === 4 ? 'ip daddr 127.0.0.0/8 return' : ''}
    fib daddr type local jump publish
  }
  chain output {
    type nat hook output priority -100; policy accept;
    ${family === 6 ? 'ip6 daddr ::1 return' : ''}
    fib daddr type local jump publish
  }
  chain postrouting {
    type nat hook postrouting priority srcnat; policy accept;
    ${family === 4 ? 'ip saddr 127.0.0.0/8 oifname @bridges masquerade' : ''}
    ct status dnat oifname . ${ip} saddr @own masquerade
    ${ip} saddr @masqueraded oifname . ${ip} saddr != @own masquerade
  }
  chain forward {
    type filter hook forward priority filter; policy accept;
    iifname @ours ${ip} saddr != @subnets jump senders
    oifname @bridges jump inwards
    iifname @internal drop
    iifname @ours meta l4proto udp meta l4proto . th dport @closed drop
  }
  chain input {
    type filter hook input priority filter; policy accept;
    iifname @ours ${ip} saddr != @subnets jump senders
    iifname @ours meta l4proto . th dport @closed drop
    iifname . ${ip} saddr @own meta l4proto . th dport @closed drop
  }
  chain senders {
    ${family === 4 ? 'ip saddr 0.0.0.0 return' : 'ip6 saddr :: return'}
    ${family === 4 ? '' : 'ip6 saddr fe80::/10 return'}
    fib saddr . iif oif missing drop
  }
  chain inwards {
    iifname . oifname @joined accept
    iifname @internal drop
    oifname @internal drop
    ct state established,related accept
    ct status dnat accept
    iifname != @bridges oifname @open accept
    oifname @routed meta l4proto ${family === 4 ? 'icmp' : 'icmpv6'} accept
    oifname @routed ${ip} daddr . meta l4proto . th dport @direct accept
    iifname . oifname @trusted ${ip} daddr . meta l4proto . th dport @direct accept
    drop
  }
}
${networks.map((network) => addBridgeText(family, table, network)).join('\n')}
`;
}

/** The sets with networks and ports as their elements. */
function setsText(family: Family, published: readonly Published[], closed: readonly ClosedPort[]): string {
  const address = `ipv${family}_addr`;
  const own = published.filter((one) => familyOf(one) === family);
  const translated = own.filter(({ port }) => isOnHost(port));
  const ports = closed.map(({ protocol, port }) => `${protocol} . ${port}`);
  return `set bridges { type ifname; }
  set ours { type ifname; }
  set internal { type ifname; }
  set joined { type ifname . ifname; }
  set own { type ifname . ${address}; flags interval; }
  set subnets { type ${address}; flags interval; }
  set masqueraded { type ${address}; flags interval; }
  set open { type ifname; }
  set routed { type ifname; }
  set trusted { type ifname . ifname; }
  set direct { type ${address} . inet_proto . inet_service; ${elementsText(directKeys(own))} }
  set closed { type inet_proto . inet_service; ${elementsText(ports)} }
  map published { type inet_proto . inet_service : ${address} . inet_service; ${elements(translated.filter(isAny))} }
  map published_at {
    type ${address} . inet_proto . inet_service : ${address} . inet_service
    ${elements(translated.filter((one) => !isAny(one)))}
  }`;
}

const LOOPBACK_GUARD = `chain loopback {
    type filter hook prerouting priority raw; policy accept;
    ip saddr 127.0.0.0/8 iifname @bridges drop
    ip daddr 127.0.0.0/8 iifname @bridges drop
  }`;

/**
 * Whether a table, as `list table` tells of it, has everything that `tableText` writes: the rules of each chain, the
 * networks, the published and the closed ports. They are counted, because the kernel has its own words for most of them; what is
 * there twice or too much is no harm.
 */
export function isWhole(listed: readonly NftObject[], family: Family, { networks, published, closed }: Rules): boolean {
  const rules = Map.groupBy(
    listed.flatMap(({ rule }) => rule ?? []),
    ({ chain }) => chain,
  );
  const sets = listed.flatMap(({ set, map }) => set ?? map ?? []);
  const elementsIn = (name: string): number => sets.find((one) => one.name === name)?.elem?.length ?? 0;
  const own = published.filter((one) => familyOf(one) === family);
  const translated = own.filter(({ port }) => isOnHost(port));
  const anywhere = translated.filter(isAny).length;
  return (
    RULE_COUNTS[family].every(([chain, count]) => (rules.get(chain)?.length ?? 0) >= count) &&
    elementsIn('bridges') >= networks.filter((network) => elementsOf(family, network).length > 0).length &&
    elementsIn('closed') >= closed.length &&
    elementsIn('published') >= anywhere &&
    elementsIn('published_at') >= translated.length - anywhere &&
    elementsIn('direct') >= directKeys(own).length
  );
}

/** How many rules each chain has. */
const RULE_COUNTS = { 4: ruleCounts(4), 6: ruleCounts(6) } as const;

function ruleCounts(family: Family): [chain: string, count: number][] {
  return [
    ...tableText(family, 'any', { networks: [], published: [], closed: [] }).matchAll(/chain (\w+) \{([^}]*)\}/g),
  ].map(([, chain = '', body = '']) => [
    chain,
    body.split('\n').filter((line) => line.trim() !== '' && !line.trim().startsWith('type ')).length,
  ]);
}

/** The commands that admit a network. */
export function addBridgeText(family: Family, table: string, network: BridgeRules): string {
  return elementsOf(family, network)
    .map(([set, element]) => `add element ${NFT_FAMILY[family]} ${table} ${set} { ${element} }`)
    .join('\n');
}

/** The commands that remove a network, as separate transactions. */
export function deleteBridgeTexts(family: Family, table: string, network: BridgeRules): string[] {
  return elementsOf(family, network).map(
    ([set, element]) => `delete element ${NFT_FAMILY[family]} ${table} ${set} { ${element} }`,
  );
}

function elementsOf(family: Family, network: BridgeRules): [string, string][] {
  const { bridge, isForeign, allowsTraffic, isMasqueraded, modes, trusted } = network;
  const mode = modes[family];
  const subnet = family === 4 ? network.subnet : network.subnet6;
  const isInternal = network.isInternal || subnet === undefined;
  if (subnet === undefined && isForeign && !network.isInternal) return [];
  const elements: [string, string | undefined][] = [
    ['bridges', `"${bridge}"`],
    ['ours', isForeign ? undefined : `"${bridge}"`],
    ['joined', allowsTraffic ? `"${bridge}" . "${bridge}"` : undefined],
    ['internal', isInternal ? `"${bridge}"` : undefined],
    ['subnets', subnet],
    ['own', subnet === undefined ? undefined : `"${bridge}" . ${subnet}`],
    ['masqueraded', isMasqueraded && !isInternal && mode !== 'routed' ? subnet : undefined],
    ['open', !isInternal && mode === 'nat-unprotected' ? `"${bridge}"` : undefined],
    ['routed', !isInternal && mode === 'routed' ? `"${bridge}"` : undefined],
    ...trusted.map((name): [string, string] => ['trusted', `"${name}" . "${bridge}"`]),
  ];
  return elements.filter((one): one is [string, string] => one[1] !== undefined);
}

/** The commands that publish ports, as one transaction. */
export function addText(table: string, published: readonly Published[]): string {
  const translated = published.filter(({ port }) => isOnHost(port));
  return [
    ...translated.map((one) => `add element ${placeOf(table, one)} { ${keyOf(one)} : ${valueOf(one)} }`),
    ...directElements(table, published).map((element) => `add element ${element}`),
  ].join('\n');
}

/** The commands that unpublish ports, as separate transactions. */
export function deleteTexts(table: string, published: readonly Published[]): string[] {
  const translated = published.filter(({ port }) => isOnHost(port));
  return [
    ...translated.map((one) => `delete element ${placeOf(table, one)} { ${keyOf(one)} }`),
    ...directElements(table, published).map((element) => `delete element ${element}`),
  ];
}

/** Several ports of the machine may lead to one of a container. */
function directElements(table: string, published: readonly Published[]): string[] {
  return ([4, 6] as const).flatMap((family) => {
    const keys = directKeys(published.filter((one) => familyOf(one) === family));
    return keys.map((key) => `${NFT_FAMILY[family]} ${table} direct { ${key} }`);
  });
}

function directKeys(published: readonly Published[]): string[] {
  const direct = published.filter(({ port }) => !isOnHost(port) || port.isDirect === true);
  return [...new Set(direct.map(({ ipAddress, port }) => `${ipAddress} . ${port.protocol} . ${port.containerPort}`))];
}

function elements(published: readonly Published[]): string {
  return elementsText(published.map((one) => `${keyOf(one)} : ${valueOf(one)}`));
}

function elementsText(elements: readonly string[]): string {
  return elements.length === 0 ? '' : `elements = { ${elements.join(', ')} };`;
}

function placeOf(table: string, one: Published): string {
  return `${NFT_FAMILY[familyOf(one)]} ${table} ${isAny(one) ? 'published' : 'published_at'}`;
}

function keyOf({ port, ...one }: Published): string {
  const address = isAny({ port, ...one }) ? '' : `${port.hostIp} . `;
  return `${address}${port.protocol} . ${port.hostPort}`;
}

function valueOf({ ipAddress, port }: Published): string {
  return `${ipAddress} . ${port.containerPort}`;
}

export function isAny({ port }: Published): boolean {
  return port.hostIp === ANY || port.hostIp === ANY_SIX;
}

export function familyOf({ port }: Published): Family {
  return isSix(port.hostIp) ? 6 : 4;
}
