import { ipBytes, isSix } from '../../lib/notations/ip-address.ts';
import { macBytes } from './links.ts';
import { attribute, nestAttributes, NLM_F, text, u32, type Message } from './netlink.ts';

const RTM = { newLink: 16, newNeighbour: 28, deleteNeighbour: 29 } as const;
const IFLA = { name: 3, mtu: 4, master: 10, linkInfo: 18, netnsFd: 28 } as const;
const IFLA_INFO_KIND = 1;
const IFLA_INFO_DATA = 2;
const VXLAN = { id: 1, local: 4, learning: 7, proxy: 11, port: 15, local6: 17 } as const;
const NDA = { destination: 1, linkAddress: 2 } as const;
const AF_BRIDGE = 7;
const NUD_PERMANENT = 0x80;
const NTF_SELF = 2;
const LINK_HEADER_BYTES = 16;

/** The port of VXLAN on all machines of a cluster that names no other. */
export const DEFAULT_VXLAN_PORT = 4789;
/** Bytes that VXLAN adds to each packet. */
export const VXLAN_OVERHEAD = 50;

type Vxlan = Readonly<{
  name: string;
  /** The network's number on the wire, 24 bits. */
  vni: number;
  /** The address of this host that its packets bear. */
  local: string;
  port: number;
  mtu: number;
  /** An open descriptor of the namespace that the link is made in. */
  netns: number;
}>;

/**
 * A link whose frames travel in UDP packets of the socket's namespace; the link itself is made in another one, in one step.
 *
 * It learns nothing: it answers for the addresses that it has a neighbour entry for, and sends to the hosts of its
 * forwarding entries. Nothing is flooded.
 */
export function createVxlan({ name, vni, local, port, mtu, netns }: Vxlan): Message {
  const portBytes = Buffer.alloc(2);
  portBytes.writeUInt16BE(port);
  const parts = [
    Buffer.alloc(LINK_HEADER_BYTES),
    attribute(IFLA.name, text(name)),
    attribute(IFLA.mtu, u32(mtu)),
    attribute(IFLA.netnsFd, u32(netns)),
    nestAttributes(
      IFLA.linkInfo,
      attribute(IFLA_INFO_KIND, text('vxlan')),
      nestAttributes(
        IFLA_INFO_DATA,
        attribute(VXLAN.id, u32(vni)),
        attribute(isSix(local) ? VXLAN.local6 : VXLAN.local, ipBytes(local)),
        attribute(VXLAN.port, portBytes),
        attribute(VXLAN.learning, Buffer.from([0])),
        attribute(VXLAN.proxy, Buffer.from([1])),
      ),
    ),
  ];
  const flags = NLM_F.create | NLM_F.exclusive;
  return { type: RTM.newLink, flags, body: Buffer.concat(parts), call: 'RTM_NEWLINK', values: ['vxlan', name, vni] };
}

/** An entry of a VXLAN link: frames for a hardware address go to a host. */
type Forwarding = Readonly<{ link: number; mac: string; host: string }>;

/** Adds an entry, or leads an existing one to another host. */
export function addForwarding({ link, mac, host }: Forwarding): Message {
  const parts = [entryHead(link), attribute(NDA.linkAddress, macBytes(mac)), attribute(NDA.destination, ipBytes(host))];
  const flags = NLM_F.create | NLM_F.replace;
  return {
    type: RTM.newNeighbour,
    flags,
    body: Buffer.concat(parts),
    call: 'RTM_NEWNEIGH',
    values: ['vxlan', mac, host],
  };
}

export function deleteForwarding({ link, mac }: Omit<Forwarding, 'host'>): Message {
  const body = Buffer.concat([entryHead(link), attribute(NDA.linkAddress, macBytes(mac))]);
  return { type: RTM.deleteNeighbour, flags: 0, body, call: 'RTM_DELNEIGH', values: ['vxlan', mac] };
}

function entryHead(link: number): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt8(AF_BRIDGE, 0);
  head.writeInt32LE(link, 4);
  head.writeUInt16LE(NUD_PERMANENT, 8);
  head.writeUInt8(NTF_SELF, 10);
  return head;
}
