import type { Element } from '../../../host/network/nft-elements.ts';
import type { NftObject } from '../../../host/network/nftables.ts';
import { ipBytes, isSix } from '../../../lib/notations/ip-address.ts';
import { addressesOf, type Place } from '../../endpoints/endpoint.ts';
import type { BridgeRules } from './ruleset.ts';

/** The addresses that somebody has: bridges and containers, by their ports. */
type Owners = Readonly<{ networks: readonly BridgeRules[]; places: readonly Place[] }>;

/**
 * The rules of neighbours as one nft table of the family `bridge`: a container that says by ARP or neighbour discovery that
 * it has the address of another one, or of a gateway, is not heard. Addresses without an owner may be claimed, as virtual
 * addresses are.
 *
 * Receivers take any number of tags of VLAN 0 off and read the packet then; the kernel has taken off the first one before these
 * rules. So each rule names the protocol that it is about: nft would look for it in the frame, where the tag is.
 */
export function neighboursText(table: string, owners: Owners): string {
  const ports = owners.places.map(({ link }) => quoteLink(link));
  const claims = owners.places.flatMap((place) => addressesOf(place).map((ip) => ({ link: place.link, ip })));
  const known = [...claims.map(({ ip }) => ip), ...owners.networks.flatMap(({ gateways }) => gateways)];
  const own = (isOfSix: boolean): string[] => claims.filter(({ ip }) => isSix(ip) === isOfSix).map(ownElement);
  const of = (isOfSix: boolean): string[] => known.filter((ip) => isSix(ip) === isOfSix).map(addressText);
  return `
add table bridge ${table}
delete table bridge ${table}
table bridge ${table} {
  set ports { type ifname; ${elements(ports)} }
  set known { type ipv4_addr; ${elements(of(false))} }
  set own { type ifname . ipv4_addr; ${elements(own(false))} }
  set known6 { typeof ${TARGET_OF_SIX}; ${elements(of(true))} }
  set own6 { typeof iifname . ${TARGET_OF_SIX}; ${elements(own(true))} }
  chain claims {
    iifname @ports meta protocol arp arp saddr ip @known iifname . arp saddr ip != @own drop
  }
  chain claims6 {
    iifname != @ports return
    meta l4proto icmpv6 icmpv6 type { 133, 135, 136 } ${SENDER_OF_SIX} @known6 iifname . ${SENDER_OF_SIX} != @own6 drop
    meta l4proto icmpv6 icmpv6 type 136 ${TARGET_OF_SIX} @known6 iifname . ${TARGET_OF_SIX} != @own6 drop
  }
  chain tagged {
    iifname @ports ${VLAN_OF_FRAME} 0 drop
  }
  chain arrive {
    type filter hook prerouting priority filter; policy accept;
    meta protocol arp jump claims
    meta protocol ip6 meta l4proto icmpv6 jump claims6
    meta protocol 8021q jump tagged
    meta protocol 8021ad jump tagged
  }
}
`;
}

/** Parts of a packet as bits, where older nft has no name for one of them: sender of IPv6, target of a neighbour's advertisement. */
const SENDER_OF_SIX = '@nh,64,128';
const TARGET_OF_SIX = '@th,64,128';
/** VLAN of the first tag, whether of 802.1Q or 802.1ad. */
const VLAN_OF_FRAME = '@ll,116,12';

/** Whether a listed table has all that `neighboursText` writes. */
export function areNeighboursWhole(listed: readonly NftObject[], { networks, places }: Owners): boolean {
  const sizeOf = (name: string): number =>
    listed.flatMap(({ set }) => set ?? []).find((set) => set.name === name)?.elem?.length ?? 0;
  const addresses = places.flatMap(addressesOf);
  const gateways = networks.flatMap((network) => network.gateways);
  return (
    listed.filter(({ rule }) => rule !== undefined).length >= RULES &&
    sizeOf('ports') >= new Set(places.map(({ link }) => link)).size &&
    sizeOf('known') + sizeOf('known6') >= new Set([...addresses, ...gateways]).size &&
    sizeOf('own') + sizeOf('own6') >= addresses.length
  );
}

const RULES = 9;

/** The elements of a container's addresses. */
export function placeElements(place: Place): Element[] {
  const { link } = place;
  const claims = addressesOf(place).flatMap((ip) => {
    const suffix = isSix(ip) ? '6' : '';
    return [
      { set: `known${suffix}`, ip },
      { set: `own${suffix}`, link, ip },
    ];
  });
  return [{ set: 'ports', link }, ...claims];
}

/** The commands that add, or remove, the addresses of a bridge. */
export function gatewayTexts(action: 'add' | 'delete', table: string, { gateways }: BridgeRules): string[] {
  return gateways.map((ip) => `${action} element bridge ${table} known${isSix(ip) ? '6' : ''} { ${addressText(ip)} }`);
}

function ownElement({ link, ip }: { link: string; ip: string }): string {
  return `${quoteLink(link)} . ${addressText(ip)}`;
}

/** An address of IPv6 is a number, as it is for the bits of a packet. */
function addressText(ip: string): string {
  return isSix(ip) ? `0x${ipBytes(ip).toString('hex')}` : ip;
}

function quoteLink(link: string): string {
  return `"${link}"`;
}

function elements(all: readonly string[]): string {
  return all.length === 0 ? '' : `elements = { ${[...new Set(all)].join(', ')} };`;
}
