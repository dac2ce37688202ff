import { closeSync } from 'node:fs';

import { bind, check, refusal } from '@gantry/engine/host/libc.ts';
import { withNetns } from '@gantry/engine/host/namespaces.ts';
import { changeLink, getLink, macBytes } from '@gantry/engine/host/network/links.ts';
import { Netlink } from '@gantry/engine/host/network/netlink.ts';
import { ipBytes } from '@gantry/engine/lib/notations/ip-address.ts';

const AF_PACKET = 17;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2000000;
const MSG_DONTWAIT = 0x40;
const ETHER_TYPES = { arp: 0x0806, ip: 0x0800, ip6: 0x86dd, vlan: 0x8100, service: 0x88a8 } as const;
const PROTOCOLS = { udp: 17, icmp: 1, icmp6: 58 } as const;
const LINK_LAYER_ADDRESS = { source: 1, target: 2 } as const;
const PREFIX_INFORMATION = 3;
const MAX_FRAME = 65_536;

const socket = bind<[number, number, number], number>('int socket(int domain, int type, int protocol)');
const bindTo = bind<[number, Buffer, number], number>('int bind(int fd, const void *address, uint32_t length)');
const send = bind<[number, Buffer, number, number], number>('int send(int fd, const void *b, size_t n, int flags)');
const receive = bind<[number, Buffer, number, number], number>('int recv(int fd, void *b, size_t n, int flags)');

/** All frames of one link of a network namespace, which a container with CAP_NET_RAW may write and read too. */
export class RawLink implements Disposable {
  readonly #fd: number;
  readonly mac: string;
  readonly #buffer = Buffer.alloc(MAX_FRAME);
  readonly #frames: Buffer[] = [];
  #isClosed = false;

  /** `up`: switches the link on first. */
  constructor(netns: number, name: string, { up = false } = {}) {
    const { fd, mac } = withNetns(netns, () => {
      using route = new Netlink();
      const link = getLink(route, name);
      if (up) route.apply(changeLink(link.index, { up }));
      return { fd: openOn(link.index), mac: link.mac };
    });
    this.#fd = fd;
    this.mac = mac;
  }

  /** Sends a frame; a link on its way may drop it, as the network's wires may. */
  send(frame: Buffer): void {
    if (send(this.#fd, frame, frame.length, 0) >= 0) return;
    const error = refusal('send', [frame.length]);
    if (error.code !== 'ENOBUFS') throw error;
  }

  /** Whether a frame with these bytes has passed the link, in whatever direction, since it was opened. */
  hasSeen(mark: Buffer): boolean {
    for (;;) {
      const length = receive(this.#fd, this.#buffer, this.#buffer.length, MSG_DONTWAIT);
      if (length < 0) return this.#frames.some((frame) => frame.includes(mark));
      this.#frames.push(Buffer.from(this.#buffer.subarray(0, length)));
    }
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    closeSync(this.#fd);
  }
}

function openOn(index: number): number {
  const protocol = ((3 & 0xff) << 8) | (3 >> 8); // ETH_P_ALL in network order
  const fd = check(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, protocol), 'socket', ['packet']);
  const address = Buffer.alloc(20); // struct sockaddr_ll
  address.writeUInt16LE(AF_PACKET, 0);
  address.writeUInt16LE(protocol, 2);
  address.writeInt32LE(index, 4);
  check(bindTo(fd, address, address.length), 'bind', [index]);
  return fd;
}

type Way = Readonly<{ from: string; to: string }>;

export type Tag = 'vlan' | 'service';

/** An Ethernet frame; `tags`: those of VLAN 0, which receivers take off, outermost first. */
export function frame(type: 'arp' | 'ip' | 'ip6', { from, to }: Way, body: Buffer, tags: readonly Tag[] = []): Buffer {
  const tagBytes = tags.map((tag) => Buffer.concat([u16(ETHER_TYPES[tag]), u16(0)]));
  return Buffer.concat([macBytes(to), macBytes(from), ...tagBytes, u16(ETHER_TYPES[type]), body]);
}

/** The body of an ARP frame: `sender` claims to be at `senderMac`. */
export function arp(
  kind: 'request' | 'reply',
  claim: { sender: string; senderMac: string; target: string; targetMac?: string },
): Buffer {
  return Buffer.concat([
    u16(1),
    u16(ETHER_TYPES.ip),
    Buffer.from([6, 4]),
    u16(kind === 'request' ? 1 : 2),
    macBytes(claim.senderMac),
    ipBytes(claim.sender),
    macBytes(claim.targetMac ?? '00:00:00:00:00:00'),
    ipBytes(claim.target),
  ]);
}

/** A packet of IPv6; the limit of hops is the one that neighbours' messages need. */
export function packetOfSix({ from, to }: Way, protocol: keyof typeof PROTOCOLS, body: Buffer, hops = 255): Buffer {
  const head = Buffer.alloc(8);
  head[0] = 0x60;
  head.writeUInt16BE(body.length, 4);
  head[6] = PROTOCOLS[protocol];
  head[7] = hops;
  const pseudo = Buffer.concat([ipBytes(from), ipBytes(to), u32(body.length), u32(PROTOCOLS[protocol])]);
  const checksumAt = protocol === 'udp' ? 6 : 2;
  const summed = Buffer.from(body);
  summed.writeUInt16BE(checksum(Buffer.concat([pseudo, body])), checksumAt);
  return Buffer.concat([head, ipBytes(from), ipBytes(to), summed]);
}

/** A packet of IPv4. */
export function packetOfFour({ from, to }: Way, protocol: keyof typeof PROTOCOLS, body: Buffer): Buffer {
  const head = Buffer.alloc(12);
  head[0] = 0x45;
  head.writeUInt16BE(20 + body.length, 2);
  head[8] = 64;
  head[9] = PROTOCOLS[protocol];
  const summed = Buffer.from(body);
  if (protocol === 'icmp') summed.writeUInt16BE(checksum(body), 2);
  const whole = Buffer.concat([head, ipBytes(from), ipBytes(to)]);
  whole.writeUInt16BE(checksum(whole), 10);
  return Buffer.concat([whole, summed]);
}

/** A datagram without a checksum, which a packet of IPv6 adds. */
export function datagram(from: number, to: number, data: Buffer): Buffer {
  return Buffer.concat([u16(from), u16(to), u16(8 + data.length), u16(0), data]);
}

/** Offers itself as a router, and a prefix for addresses. */
export function routerAdvertisement(mac: string, prefix: string): Buffer {
  const head = Buffer.from([134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0]);
  const information = Buffer.concat([
    Buffer.from([PREFIX_INFORMATION, 4, 64, 0xc0]),
    u32(86_400),
    u32(86_400),
    u32(0),
    ipBytes(prefix),
  ]);
  return Buffer.concat([head, linkLayerAddress('source', mac), information]);
}

/** Says where an address is. */
export function neighbourAdvertisement(ip: string, mac: string): Buffer {
  return Buffer.concat([Buffer.from([136, 0, 0, 0, 0x20, 0, 0, 0]), ipBytes(ip), linkLayerAddress('target', mac)]);
}

/** Asks where an address is, and says where the asker is. */
export function neighbourSolicitation(ip: string, mac: string): Buffer {
  return Buffer.concat([Buffer.from([135, 0, 0, 0, 0, 0, 0, 0]), ipBytes(ip), linkLayerAddress('source', mac)]);
}

/** Says that another router is nearer to a destination; `cause` is the packet that went the long way. */
export function redirectOfSix(router: string, destination: string, cause: Buffer): Buffer {
  const option = Buffer.concat([Buffer.from([4, Math.ceil((8 + cause.length) / 8), 0, 0, 0, 0, 0, 0]), cause]);
  const whole = Buffer.concat([Buffer.from([137, 0, 0, 0, 0, 0, 0, 0]), ipBytes(router), ipBytes(destination), option]);
  return Buffer.concat([whole, Buffer.alloc((8 - (whole.length % 8)) % 8)]);
}

/** Like `redirectOfSix`, for IPv4. */
export function redirectOfFour(router: string, cause: Buffer): Buffer {
  return Buffer.concat([Buffer.from([5, 1, 0, 0]), ipBytes(router), cause.subarray(0, 28)]);
}

function linkLayerAddress(kind: keyof typeof LINK_LAYER_ADDRESS, mac: string): Buffer {
  return Buffer.concat([Buffer.from([LINK_LAYER_ADDRESS[kind], 1]), macBytes(mac)]);
}

function checksum(bytes: Buffer): number {
  let sum = 0;
  for (let at = 0; at < bytes.length; at += 2) sum += ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return ~sum & 0xffff;
}

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
