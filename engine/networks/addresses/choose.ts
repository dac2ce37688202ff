import { EngineError } from '../../lib/errors.ts';
import { gatewayModes } from '../settings/gateway-modes.ts';
import type { NetworkRecord, PoolConfig } from '../store.ts';
import { addressAt, cidrText, overlaps, parseCidr, type Cidr } from './cidr.ts';
import { addressesOf, poolsByFamily, type Addresses, type NetworkAddresses, type Surroundings } from './pools.ts';

type Chosen = Pick<NetworkRecord, 'subnet' | 'gateway' | 'ipv6' | 'more'>;

/**
 * The addresses of a new network: ranges of IPv4, and of IPv6 where the client has asked for it. Throws as dockerd:
 * `invalid`, `forbidden` for several of a family where the driver takes one.
 *
 * @param around the ranges that they must not overlap
 */
export function chooseAddresses(
  network: NetworkRecord,
  around: (more: readonly Cidr[]) => Surroundings,
  { takesSeveral }: { takesSeveral: boolean },
): Chosen {
  const { name, driver, custom } = network;
  const { four, six } = poolsByFamily(custom?.ipam.pools ?? []);
  const modes = gatewayModes(custom?.options ?? {});
  // An isolated bridge has no address, so no container has a gateway.
  const reached = (one: Addresses, pool?: PoolConfig): Addresses =>
    modes[one.subnet.family] === 'isolated' && pool?.gateway === undefined ? { ...one, gateway: '' } : one;
  const read = (pools: readonly PoolConfig[]): Addresses[] =>
    pools.map((pool, position) => {
      const before = pools.slice(0, position).flatMap(({ subnet }) => parseCidr(subnet)?.range ?? []);
      return reached(addressesOf(name, pool, around(before)), pool);
    });
  const ofFour = custom?.enableIPv4 === false ? [] : read(four);
  if (custom?.enableIPv4 !== false && ofFour.length === 0) {
    ofFour.push(reached(addressesOf(name, undefined, around([]))));
  }
  const [first, ...more] = ofFour;
  const ofSix = custom?.enableIPv6 === true ? read(six) : [];
  if (custom?.enableIPv6 === true && ofSix.length === 0) ofSix.push(reached(addressesOfSix(around([]))));
  const [firstOfSix, ...moreOfSix] = ofSix;
  const rest = [...more, ...moreOfSix];
  if (rest.length > 0 && !takesSeveral) {
    throw new EngineError('forbidden', `${driver} driver doesn't support multiple subnets`);
  }
  return {
    ...(first !== undefined && asText(first)),
    ...(firstOfSix !== undefined && { ipv6: asText(firstOfSix) }),
    ...(rest.length > 0 && { more: rest.map(asText) }),
  };
}

/** A range of the machine's own unique local addresses (RFC 4193), as dockerd from 27 on. */
function addressesOfSix({ networks, machine, uniqueLocal }: Surroundings): Addresses {
  const taken = [...networks, ...machine()];
  for (let number = 0n; number < 65_536n; number += 1n) {
    const subnet: Cidr = { family: 6, base: uniqueLocal.base + (number << 64n), prefixLength: 64 };
    if (!taken.some((range) => overlaps(range, subnet))) {
      return { subnet, range: subnet, gateway: addressAt(subnet, 1), auxiliary: [] };
    }
  }
  throw noRangeOfSix();
}

/** Refusal of IPv6 without a range, in dockerd's words. */
export function noRangeOfSix(): EngineError {
  const reason = 'non-overlapping IPv6 address pool among the defaults to assign to the network';
  return new EngineError('notFound', `could not find an available, ${reason}`);
}

function asText({ subnet, gateway }: Addresses): { subnet: string; gateway: string } {
  return { subnet: cidrText(subnet), gateway };
}

/** The addresses of an existing network. */
export function storedAddresses({ id, subnet, gateway, ipv6, more = [], custom }: NetworkRecord): NetworkAddresses {
  const hasFour = subnet !== undefined && gateway !== undefined;
  if (!hasFour && ipv6 === undefined) throw new Error(`the stored network ${id} has no addresses`);
  const { four, six } = poolsByFamily(custom?.ipam.pools ?? []);
  const rest = [...(hasFour ? four.slice(1) : []), ...(ipv6 === undefined ? [] : six.slice(1))];
  return {
    ...(hasFour && { ipv4: fromText({ subnet, gateway }, four[0]) }),
    ...(ipv6 !== undefined && { ipv6: withMac(fromText(ipv6, six[0]), custom === undefined) }),
    more: more.map((one, position) => fromText(one, rest[position])),
  };
}

/** So many bits of a range are left to a hardware address. */
const BITS_BEFORE_MAC = 80;

function withMac<Range extends Addresses>(range: Range, isDefault: boolean): Range & { isOfMac: boolean } {
  return { ...range, isOfMac: isDefault && range.subnet.prefixLength <= BITS_BEFORE_MAC };
}

function fromText(
  { subnet: text, gateway }: { subnet: string; gateway: string },
  pool: PoolConfig | undefined,
): Addresses {
  const subnet = parseCidr(text)?.range;
  if (subnet === undefined) throw new Error(`the stored range ${text} cannot be read`);
  const range = pool?.range === undefined ? subnet : (parseCidr(pool.range)?.range ?? subnet);
  return { subnet, range, gateway, auxiliary: Object.values(pool?.auxiliary ?? {}) };
}
