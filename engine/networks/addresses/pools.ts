import { EngineError, refuseIf } from '../../lib/errors.ts';
import { ipText, isSix, parseIp } from '../../lib/notations/ip-address.ts';
import type { PoolConfig } from '../store.ts';
import { addressAt, cidrText, contains, isEdge, lastOf, overlaps, parseCidr, type Cidr } from './cidr.ts';
import { chooseSubnet } from './subnets.ts';

/** The addresses of a network. */
export type Addresses = Readonly<{
  subnet: Cidr;
  /** The range of chosen addresses; static ones may be anywhere in the subnet. */
  range: Cidr;
  gateway: string;
  /** Never given to containers. */
  auxiliary: readonly string[];
}>;

/**
 * `isOfMac`: an endpoint's address ends with its hardware address, as in dockerd on its own bridge; else the lowest free
 * one is taken.
 */
type SixAddresses = Addresses & Readonly<{ isOfMac: boolean }>;

/** The first range of each family that the network has, and further ones for when one of them is full. */
export type NetworkAddresses = Readonly<{ ipv4?: Addresses; ipv6?: SixAddresses; more?: readonly Addresses[] }>;

/** The ranges that a network must not overlap, and those to choose from. */
export type Surroundings = Readonly<{
  /** Ranges of the other networks. */
  networks: readonly Cidr[];
  /** Ranges of the machine's links and routes: only chosen subnets avoid them, as in dockerd. */
  machine: () => readonly Cidr[];
  /** Pools of the setting; empty: the usual ones. */
  pools: readonly Cidr[];
  /** The prefix of /48 for chosen subnets of IPv6. */
  uniqueLocal: Cidr;
}>;

/** A client's ranges, by their family. A malformed range counts as one of IPv4, where it is refused. */
export function poolsByFamily(pools: readonly PoolConfig[]): { four: PoolConfig[]; six: PoolConfig[] } {
  return {
    four: pools.filter(({ subnet }) => !isSix(subnet)),
    six: pools.filter(({ subnet }) => isSix(subnet)),
  };
}

/** `::ffff:0:0/96`, RFC 4291, section 2.5.5.2. */
const MAPPED: Cidr = { family: 6, base: 0xffff_0000_0000n, prefixLength: 96 };

/** Reads and checks a client's range, or chooses one. Throws `invalid` and `forbidden` in dockerd's words. */
export function addressesOf(
  name: string,
  pool: PoolConfig | undefined,
  around: Omit<Surroundings, 'uniqueLocal'>,
): Addresses {
  if (pool === undefined) {
    const subnet = chooseSubnet([...around.networks, ...around.machine()], around.pools);
    return { subnet, range: subnet, gateway: addressAt(subnet, 1), auxiliary: [] };
  }
  const subnet = parseCidr(pool.subnet)?.range;
  if (subnet === undefined) {
    throw new EngineError('invalid', `Invalid subnet ${pool.subnet} : invalid CIDR address: ${pool.subnet}`);
  }
  const reason = 'addresses of IPv4 that are mapped into IPv6 belong to no link';
  refuseIf(overlaps(subnet, MAPPED), `Invalid subnet ${pool.subnet} : ${reason}`);
  if (around.networks.some((other) => overlaps(other, subnet))) {
    throw new EngineError('forbidden', 'Pool overlaps with other one on this address space');
  }
  const range = rangeWithin(subnet, pool);
  const auxiliary = auxiliaryOf(name, subnet, pool.auxiliary ?? {});
  const gateway = gatewayOf(subnet, range, pool.gateway, auxiliary);
  return { subnet, range, gateway, auxiliary };
}

function rangeWithin(subnet: Cidr, { subnet: pool, range: text }: PoolConfig): Cidr {
  if (text === undefined) return subnet;
  const range = parseCidr(text)?.range;
  const request = `failed to parse pool request for address space "LocalDefault" pool "${pool}" subpool "${text}"`;
  if (range === undefined) throw new EngineError('invalid', `${request}: Invalid Address SubPool`);
  refuseIf(range.base < subnet.base || lastOf(range) > lastOf(subnet), `${request}: it is not within the pool`);
  return range;
}

function auxiliaryOf(network: string, subnet: Cidr, named: Readonly<Record<string, string>>): string[] {
  const taken = new Set<string>();
  for (const [name, text] of Object.entries(named)) {
    const address = parseIp(text);
    refuseIf(
      address === undefined,
      `non parsable secondary ip address (${name}:${text}) passed for network ${network}`,
    );
    if (!contains(subnet, address!)) {
      const place = `must belong to the master pool: ${cidrText(subnet)}`;
      throw new EngineError('forbidden', `auxiliary address: (${name}:${text}) ${place}`);
    }
    refuseIf(
      taken.has(text) || isEdge(subnet, address!),
      `failed to allocate secondary ip address (${name}:${text}): Address already in use`,
    );
    taken.add(text);
  }
  return [...taken];
}

function gatewayOf(subnet: Cidr, range: Cidr, wanted: string | undefined, auxiliary: readonly string[]): string {
  if (wanted !== undefined) return checkedGateway(subnet, wanted, auxiliary);
  const { family } = subnet;
  const taken = new Set(auxiliary.map((ip) => parseIp(ip)?.value));
  for (let value = range.base; value <= lastOf(range); value += 1n) {
    if (!isEdge(subnet, { family, value }) && !taken.has(value)) return ipText({ family, value });
  }
  throw new EngineError('invalid', 'failed to allocate gateway (): No available addresses on this pool');
}

function checkedGateway(subnet: Cidr, text: string, auxiliary: readonly string[]): string {
  const address = parseIp(text);
  refuseIf(address === undefined, `invalid gateway address ${text} in Ipam configuration`);
  const refusal = `failed to allocate gateway (${text})`;
  refuseIf(!contains(subnet, address!), `${refusal}: Requested address is out of range`);
  refuseIf(isEdge(subnet, address!), `${refusal}: Address already in use`);
  const same = auxiliary.includes(text);
  refuseIf(same, `failed to allocate secondary ip address (${text}): Address already in use`);
  return text;
}
