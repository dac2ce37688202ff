import { ipBytes, ipOfBytes, isSix, type Family } from '../../lib/notations/ip-address.ts';
import { SystemError } from '../libc.ts';
import { attribute, nestAttributes, NLM_F, readAttributes, u16, u32, type Message, type Netlink } from './netlink.ts';

const IPCTNL = { get: (1 << 8) | 1, delete: (1 << 8) | 2 } as const;
const NLA_NESTED = 0x8000;
const HEAD_BYTES = 4;
const AF_INET = 2;
const AF_INET6 = 10;
const CTA = { tupleOriginal: 1, tupleReply: 2, id: 12, zone: 18, filter: 25 } as const;
const CTA_TUPLE_IP = 1;
const CTA_TUPLE_PROTO = 2;
/** The first address of a tuple, and the second one, of each family. */
const CTA_IP = { 4: { source: 1, destination: 2 }, 6: { source: 3, destination: 4 } } as const;
const CTA_PROTO = { number: 1, sourcePort: 2, destinationPort: 3 } as const;
const CTA_FILTER_ORIG_FLAGS = 1;
const CTA_FILTER_REPLY_FLAGS = 2;
const MATCH = { ipSource: 1 << 0, ipDestination: 1 << 1, protocol: 1 << 3, destinationPort: 1 << 5 } as const;
const IPPROTO_UDP = 17;

/** A flow of UDP that the kernel tracks. */
export type UdpFlow = Readonly<{
  /** The address and port that the client sends to. */
  ip: string;
  port: number;
  /** The address and port that the packets are led to. */
  target: string;
  targetPort: number;
  /** Attributes that tell the kernel this flow from others. */
  identity: Buffer;
}>;

/** Flows by the address that they are led to, or by an address or port that their client sends to. */
export type FlowChoice = Readonly<{ target: string } | { ip: string } | { port: number }>;

/**
 * Makes the kernel forget UDP flows. A port is one of IPv4.
 *
 * UDP has no end of a connection, so a client that keeps sending would reach the former owner of a published port for
 * minutes. The kernel compares addresses of IPv6 the wrong way round, and before 6.10 it compares none: there the flows
 * are listed.
 */
export function forgetUdpFlows(netfilter: Netlink, choice: FlowChoice): void {
  const family = isSix(addressIn(choice)) ? 6 : 4;
  if (family === 4 && forgetByFilter(netfilter, choice)) return;
  const chosen = Object.entries(choice) as [keyof UdpFlow, string | number][];
  const flows = udpFlows(netfilter, family).filter((flow) => chosen.every(([key, value]) => flow[key] === value));
  forgetFlows(netfilter, family, flows);
}

/** False: the kernel cannot. */
function forgetByFilter(netfilter: Netlink, choice: FlowChoice): boolean {
  const { tuple, original, reply } = filterFor(choice);
  try {
    const body = Buffer.concat([tuple, filterOf({ original, reply })]);
    netfilter.apply(deleteMessage(4, body, addressIn(choice)));
    return true;
  } catch (error) {
    if (error instanceof SystemError) return false;
    throw error;
  }
}

function filterFor(choice: FlowChoice): { tuple: Buffer; original: number; reply: number } {
  if ('target' in choice) {
    const ip = attribute(CTA_IP[4].source, ipBytes(choice.target));
    return { tuple: udpTuple(CTA.tupleReply, { ip }), original: 0, reply: MATCH.ipSource | MATCH.protocol };
  }
  if ('ip' in choice) {
    const ip = attribute(CTA_IP[4].destination, ipBytes(choice.ip));
    return { tuple: udpTuple(CTA.tupleOriginal, { ip }), original: MATCH.ipDestination | MATCH.protocol, reply: 0 };
  }
  const port = attribute(CTA_PROTO.destinationPort, networkOrder(choice.port));
  return { tuple: udpTuple(CTA.tupleOriginal, { port }), original: MATCH.destinationPort | MATCH.protocol, reply: 0 };
}

function udpTuple(type: number, { ip, port }: { ip?: Buffer; port?: Buffer }): Buffer {
  const protocol = attribute(CTA_PROTO.number, Buffer.from([IPPROTO_UDP]));
  return nestAttributes(
    type | NLA_NESTED,
    ...(ip === undefined ? [] : [nestAttributes(CTA_TUPLE_IP | NLA_NESTED, ip)]),
    nestAttributes(CTA_TUPLE_PROTO | NLA_NESTED, protocol, ...(port === undefined ? [] : [port])),
  );
}

function addressIn(choice: FlowChoice): string {
  return 'target' in choice ? choice.target : 'ip' in choice ? choice.ip : '';
}

/** The flows of UDP in a family, or those to a port. */
export function udpFlows(netfilter: Netlink, family: Family, port?: number): UdpFlow[] {
  const wanted = port === undefined ? {} : { port: attribute(CTA_PROTO.destinationPort, networkOrder(port)) };
  const original = MATCH.protocol | (port === undefined ? 0 : MATCH.destinationPort);
  const filter = filterOf({ original, reply: 0 });
  const body = Buffer.concat([headOf(family), udpTuple(CTA.tupleOriginal, wanted), filter]);
  const values = ['udp', family, port ?? 'all'];
  const answers = netfilter.query({ type: IPCTNL.get, flags: NLM_F.dump, body, call: 'IPCTNL_MSG_CT_GET', values });
  const flows = answers.flatMap((answer) => flowOf(answer, family) ?? []);
  return flows.filter((flow) => port === undefined || flow.port === port);
}

/** Makes the kernel forget flows; ignores those that have ended meanwhile. */
export function forgetFlows(netfilter: Netlink, family: Family, flows: readonly UdpFlow[]): void {
  try {
    netfilter.apply(...flows.map(({ identity, ip }) => deleteMessage(family, identity, ip)));
  } catch (error) {
    if (!(error instanceof SystemError) || error.code !== 'ENOENT') throw error;
  }
}

/** Undefined for other protocols, and for an answer without the tuples. */
function flowOf(answer: Buffer, family: Family): UdpFlow | undefined {
  const attributes = readAttributes(answer, HEAD_BYTES);
  const original = tupleOf(attributes.get(CTA.tupleOriginal), family);
  const reply = tupleOf(attributes.get(CTA.tupleReply), family);
  if (original === undefined || reply === undefined) return undefined;
  const identity = [CTA.tupleOriginal, CTA.id, CTA.zone].flatMap((type) => {
    const value = attributes.get(type);
    return value === undefined ? [] : [attribute(type === CTA.tupleOriginal ? type | NLA_NESTED : type, value)];
  });
  return {
    ip: original.destination,
    port: original.destinationPort,
    target: reply.source,
    targetPort: reply.sourcePort,
    identity: Buffer.concat(identity),
  };
}

type Tuple = Readonly<{ source: string; sourcePort: number; destination: string; destinationPort: number }>;

function tupleOf(tuple: Buffer | undefined, family: Family): Tuple | undefined {
  if (tuple === undefined) return undefined;
  const parts = readAttributes(tuple);
  const [ip, proto] = [parts.get(CTA_TUPLE_IP), parts.get(CTA_TUPLE_PROTO)];
  if (ip === undefined || proto === undefined) return undefined;
  const [addresses, protocol] = [readAttributes(ip), readAttributes(proto)];
  const source = addresses.get(CTA_IP[family].source);
  const destination = addresses.get(CTA_IP[family].destination);
  const sourcePort = protocol.get(CTA_PROTO.sourcePort);
  const destinationPort = protocol.get(CTA_PROTO.destinationPort);
  if (protocol.get(CTA_PROTO.number)?.readUInt8(0) !== IPPROTO_UDP) return undefined;
  if (source === undefined || destination === undefined) return undefined;
  if (sourcePort === undefined || destinationPort === undefined) return undefined;
  return {
    source: ipOfBytes(source),
    sourcePort: sourcePort.readUInt16BE(0),
    destination: ipOfBytes(destination),
    destinationPort: destinationPort.readUInt16BE(0),
  };
}

function deleteMessage(family: Family, what: Buffer, ip: string): Message {
  return {
    type: IPCTNL.delete,
    flags: NLM_F.ack,
    body: Buffer.concat([headOf(family), what]),
    call: 'IPCTNL_MSG_CT_DELETE',
    values: ['udp', ip],
  };
}

function headOf(family: Family): Buffer {
  return Buffer.from([family === 4 ? AF_INET : AF_INET6, 0, 0, 0]);
}

function filterOf({ original, reply }: { original: number; reply: number }): Buffer {
  return nestAttributes(
    CTA.filter | NLA_NESTED,
    attribute(CTA_FILTER_ORIG_FLAGS, u32(original)),
    attribute(CTA_FILTER_REPLY_FLAGS, u32(reply)),
  );
}

function networkOrder(port: number): Buffer {
  return u16(port).swap16();
}
