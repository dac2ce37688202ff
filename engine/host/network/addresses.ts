import { ipBytes, ipOfBytes, isSix, type Family } from '../../lib/notations/ip-address.ts';
import { SystemError } from '../libc.ts';
import { macBytes, macText } from './links.ts';
import { attribute, NLM_F, readAttributes, u32, type Message, type Netlink } from './netlink.ts';

const RTM = {
  newAddress: 20,
  deleteAddress: 21,
  getAddress: 22,
  newRoute: 24,
  deleteRoute: 25,
  getRoute: 26,
  newNeighbour: 28,
  deleteNeighbour: 29,
  getNeighbour: 30,
} as const;
const AF_INET = 2;
const AF_INET6 = 10;
const AF_BRIDGE = 7;
const IFA_ADDRESS = 1;
const IFA_LOCAL = 2;
const IFA_F_NODAD = 2;
const IFA_BROADCAST = 4;
const RTA = { destination: 1, outInterface: 4, gateway: 5, preferredSource: 7, table: 15 } as const;
const RT_TABLE_MAIN = 254;
const RTPROT_BOOT = 3;
const SCOPE = { universe: 0, link: 253 } as const;
const RTN_UNICAST = 1;
const RTN_LOCAL = 2;
const NDA = { destination: 1, linkAddress: 2 } as const;
const NUD = { reachable: 2, noArp: 0x40, permanent: 0x80 } as const;
const NTF_MASTER = 4;
const NTF_STICKY = 0x40;

export type Address = Readonly<{ link: number; ip: string; prefixLength: number }>;

export type Route = Readonly<{
  /** `0.0.0.0` or `::` with prefix length 0 is the default route. */
  destination: string;
  prefixLength: number;
  gateway?: string;
  link?: number;
}>;

type Neighbour = Readonly<{ link: number; ip: string; mac: string }>;

/**
 * Gives a link an address: of IPv4 with the broadcast address of its prefix, of IPv6 without duplicate address
 * detection, so that it is usable at once.
 */
export function addAddress({ link, ip, prefixLength }: Address): Message {
  const address = ipBytes(ip);
  const parts = [attribute(IFA_LOCAL, address)];
  if (address.length === 4 && prefixLength < 31) {
    const broadcast = u32(0);
    const host = prefixLength === 0 ? -1 : (2 ** (32 - prefixLength) - 1) | 0;
    broadcast.writeUInt32BE((address.readUInt32BE() | host) >>> 0);
    parts.push(attribute(IFA_BROADCAST, broadcast));
  }
  return addressMessage(RTM.newAddress, 'RTM_NEWADDR', CREATE, { link, ip, prefixLength }, parts);
}

export function deleteAddress(address: Address): Message {
  return addressMessage(RTM.deleteAddress, 'RTM_DELADDR', 0, address, [attribute(IFA_LOCAL, ipBytes(address.ip))]);
}

/** The addresses of one family of all links in the socket's namespace. */
export function listAddresses(route: Netlink, family: Family = 4): Address[] {
  const body = Buffer.alloc(8);
  body.writeUInt8(kernelFamily(family));
  const query = { type: RTM.getAddress, flags: NLM_F.dump, body, call: 'RTM_GETADDR', values: [] };
  const answers = route.query(query).filter((answer) => answer.readUInt8(0) === kernelFamily(family));
  return answers.map((answer) => {
    const found = readAttributes(answer, 8);
    return {
      link: answer.readUInt32LE(4),
      ip: ipOfBytes(found.get(IFA_LOCAL) ?? found.get(IFA_ADDRESS)!),
      prefixLength: answer.readUInt8(1),
    };
  });
}

/** Adds a route to the main table: over a gateway, or straight onto a link. */
export function addRoute(route: Route): Message {
  return routeMessage(RTM.newRoute, 'RTM_NEWROUTE', CREATE, route);
}

export function deleteRoute(route: Route): Message {
  return routeMessage(RTM.deleteRoute, 'RTM_DELROUTE', 0, route);
}

/** The unicast routes of one family in the main table. */
export function listRoutes(route: Netlink, family: Family = 4): Route[] {
  const body = Buffer.alloc(12);
  body.writeUInt8(kernelFamily(family));
  const query = { type: RTM.getRoute, flags: NLM_F.dump, body, call: 'RTM_GETROUTE', values: [] };
  return route
    .query(query)
    .filter((answer) => answer.readUInt8(0) === kernelFamily(family)) // a kernel without IPv6 answers with IPv4
    .filter((answer) => answer.readUInt8(4) === RT_TABLE_MAIN && answer.readUInt8(7) === RTN_UNICAST)
    .map((answer) => {
      const found = readAttributes(answer, 12);
      const gateway = found.get(RTA.gateway);
      return {
        destination: destinationOf(found.get(RTA.destination), family),
        prefixLength: answer.readUInt8(1),
        gateway: gateway === undefined ? undefined : ipOfBytes(gateway),
        link: found.get(RTA.outInterface)?.readUInt32LE(),
      };
    });
}

/** Whether packets to an address end at this machine. */
export function isLocal(route: Netlink, ip: string): boolean {
  const head = Buffer.alloc(12);
  head.writeUInt8(familyOf(ip), 0);
  head.writeUInt8(ipBytes(ip).length * 8, 1);
  const body = Buffer.concat([head, attribute(RTA.destination, ipBytes(ip))]);
  try {
    const [answer] = route.query({ type: RTM.getRoute, flags: 0, body, call: 'RTM_GETROUTE', values: [ip] });
    return answer?.readUInt8(7) === RTN_LOCAL;
  } catch (error) {
    if (error instanceof SystemError) return false; // there is no way to it
    throw error;
  }
}

/** Sets the hardware address of a neighbour: as if it had just answered, so that the entry ages, or for good. */
export function addNeighbour({ link, ip, mac }: Neighbour, { forGood = false } = {}): Message {
  const parts = [attribute(NDA.destination, ipBytes(ip)), attribute(NDA.linkAddress, macBytes(mac))];
  const head = neighbourHead(familyOf(ip), link, forGood ? NUD.permanent : NUD.reachable, 0);
  return neighbourMessage(RTM.newNeighbour, 'RTM_NEWNEIGH', REPLACE, [link, ip, mac], [head, ...parts]);
}

export function deleteNeighbour({ link, ip }: { link: number; ip: string }): Message {
  const head = neighbourHead(familyOf(ip), link, 0, 0);
  const parts = [head, attribute(NDA.destination, ipBytes(ip))];
  return neighbourMessage(RTM.deleteNeighbour, 'RTM_DELNEIGH', 0, [link, ip], parts);
}

/** The IPv4 neighbours that have a hardware address. */
export function listNeighbours(route: Netlink): Neighbour[] {
  const body = neighbourHead(AF_INET, 0, 0, 0);
  const query = { type: RTM.getNeighbour, flags: NLM_F.dump, body, call: 'RTM_GETNEIGH', values: [] };
  return route.query(query).flatMap((answer) => {
    const found = readAttributes(answer, 12);
    const mac = found.get(NDA.linkAddress);
    if (mac === undefined) return [];
    return [{ link: answer.readInt32LE(4), ip: ipOfBytes(found.get(NDA.destination)!), mac: macText(mac) }];
  });
}

/**
 * Pins a hardware address to a port of a bridge, and takes it from the port that had it.
 *
 * A namespace that is being torn down still answers for its address for some milliseconds; a port that learns from
 * such an answer would send the packets of the address's new owner to the dead one.
 */
export function pinToPort(port: number, mac: string): Message {
  const head = neighbourHead(AF_BRIDGE, port, NUD.noArp, NTF_MASTER | NTF_STICKY);
  const parts = [head, attribute(NDA.linkAddress, macBytes(mac))];
  return neighbourMessage(RTM.newNeighbour, 'RTM_NEWNEIGH', REPLACE, ['bridge port', port, mac], parts);
}

/** Takes back what `pinToPort` did. */
export function unpinFromPort(port: number, mac: string): Message {
  const head = neighbourHead(AF_BRIDGE, port, 0, NTF_MASTER);
  const parts = [head, attribute(NDA.linkAddress, macBytes(mac))];
  return neighbourMessage(RTM.deleteNeighbour, 'RTM_DELNEIGH', 0, ['bridge port', port, mac], parts);
}

/** The hardware addresses that the bridges of this namespace know, and the port of each. */
export function listPinned(route: Netlink): { port: number; mac: string }[] {
  const body = neighbourHead(AF_BRIDGE, 0, 0, 0);
  const query = { type: RTM.getNeighbour, flags: NLM_F.dump, body, call: 'RTM_GETNEIGH', values: ['bridge'] };
  return route
    .query(query)
    .filter((answer) => (answer.readUInt16LE(8) & NUD.noArp) !== 0)
    .flatMap((answer) => {
      const mac = readAttributes(answer, 12).get(NDA.linkAddress);
      return mac === undefined ? [] : [{ port: answer.readInt32LE(4), mac: macText(mac) }];
    });
}

const CREATE = NLM_F.create | NLM_F.exclusive;
const REPLACE = NLM_F.create | NLM_F.replace;

function addressMessage(
  type: number,
  call: string,
  flags: number,
  { link, ip, prefixLength }: Address,
  parts: readonly Buffer[],
): Message {
  const head = Buffer.alloc(8);
  head.writeUInt8(familyOf(ip), 0);
  head.writeUInt8(prefixLength, 1);
  if (familyOf(ip) === AF_INET6) head.writeUInt8(IFA_F_NODAD, 2);
  head.writeUInt32LE(link, 4);
  return { type, flags, body: Buffer.concat([head, ...parts]), call, values: [link, `${ip}/${prefixLength}`] };
}

function routeMessage(type: number, call: string, flags: number, route: Route): Message {
  const head = Buffer.alloc(12);
  head.writeUInt8(familyOf(route.destination), 0);
  head.writeUInt8(route.prefixLength, 1);
  head.writeUInt8(RT_TABLE_MAIN, 4);
  head.writeUInt8(RTPROT_BOOT, 5);
  head.writeUInt8(route.gateway === undefined ? SCOPE.link : SCOPE.universe, 6);
  head.writeUInt8(RTN_UNICAST, 7);
  const parts: Buffer[] = [];
  if (route.prefixLength > 0) parts.push(attribute(RTA.destination, ipBytes(route.destination)));
  if (route.gateway !== undefined) parts.push(attribute(RTA.gateway, ipBytes(route.gateway)));
  if (route.link !== undefined) parts.push(attribute(RTA.outInterface, u32(route.link)));
  return { type, flags, body: Buffer.concat([head, ...parts]), call, values: [route] };
}

function neighbourHead(family: number, link: number, state: number, flags: number): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt8(family, 0);
  head.writeInt32LE(link, 4);
  head.writeUInt16LE(state, 8);
  head.writeUInt8(flags, 10);
  return head;
}

function neighbourMessage(
  type: number,
  call: string,
  flags: number,
  values: readonly unknown[],
  parts: readonly Buffer[],
): Message {
  return { type, flags, body: Buffer.concat(parts), call, values };
}

function kernelFamily(family: Family): number {
  return family === 4 ? AF_INET : AF_INET6;
}

function familyOf(ip: string): number {
  return kernelFamily(isSix(ip) ? 6 : 4);
}

/** A default route has none. */
function destinationOf(bytes: Buffer | undefined, family: Family): string {
  return ipOfBytes(bytes ?? Buffer.alloc(family === 4 ? 4 : 16));
}
