import { EngineError, refuseIf } from '../../lib/errors.ts';
import { parseIp } from '../../lib/ip-address.ts';
import { parseCidr } from '../addresses/cidr.ts';
import { poolsByFamily, type Addresses } from '../addresses/pools.ts';
import { ANY } from '../endpoints/ports.ts';
import { booleanOption, numberOption, optionOf, unreadable, type Options } from '../options.ts';
import type { NetworkRecord, PoolConfig } from '../store.ts';

/** A network of the driver `bridge`, ready to be set up. */
export type BridgeSettings = Addresses &
  Readonly<{
    networkId: string;
    /** Of the link. */
    name: string;
    ipv6: Addresses | undefined;
    mtu: number;
    /** Without a way out of the network, and without published ports. */
    isInternal: boolean;
    /** Whether its containers may talk to each other. */
    allowsTraffic: boolean;
    /** Whether its containers get out under the machine's address. */
    isMasqueraded: boolean;
    /** Where ports are published that name no address. */
    hostBinding: string;
  }>;

/**
 * The beginning of the links of user networks. A pattern with it admits all of them in the machine's FORWARD chain at
 * once; `br-` would admit dockerd's as well.
 */
export const USER_BRIDGE_PREFIX = 'gn-';

const ID_LETTERS = 12;

/** The name of a new network's link. */
export function bridgeNameOf({ id, custom }: Pick<NetworkRecord, 'id' | 'custom'>): string {
  return optionOf(custom?.options ?? {}, 'bridge.name')?.value || `${USER_BRIDGE_PREFIX}${id.slice(0, ID_LETTERS)}`;
}

/** The settings of a network whose addresses are known. Throws `invalid` for options that cannot be read. */
export function bridgeSettings(network: NetworkRecord, usualMtu: number): BridgeSettings {
  const { id, bridge, subnet, gateway, ipv6, custom } = network;
  if (bridge === undefined || subnet === undefined || gateway === undefined) {
    throw new Error(`the stored network ${id} has no usable addresses`);
  }
  const options = custom?.options ?? {};
  const { four, six } = poolsByFamily(custom?.ipam.pools ?? []);
  return {
    networkId: id,
    name: bridge,
    ...storedAddresses({ subnet, gateway }, four[0]),
    ipv6: ipv6 === undefined ? undefined : storedAddresses(ipv6, six[0]),
    mtu: mtuOption(options) || usualMtu,
    isInternal: custom?.internal ?? false,
    allowsTraffic: booleanOption(options, 'bridge.enable_icc', true),
    isMasqueraded: booleanOption(options, 'bridge.enable_ip_masquerade', true),
    hostBinding: hostBinding(options),
  };
}

function storedAddresses(
  { subnet: text, gateway }: { subnet: string; gateway: string },
  pool: PoolConfig | undefined,
): Addresses {
  const subnet = parseCidr(text)?.range;
  if (subnet === undefined) throw new Error(`the stored range ${text} cannot be read`);
  const range = pool?.range === undefined ? subnet : (parseCidr(pool.range)?.range ?? subnet);
  return { subnet, range, gateway, auxiliary: Object.values(pool?.auxiliary ?? {}) };
}

/** Throws `invalid` for options that no network can have. */
export function checkBridgeOptions(options: Options): void {
  mtuOption(options);
  hostBinding(options);
  for (const name of ['enable_icc', 'enable_ip_masquerade', 'default_bridge']) {
    booleanOption(options, `bridge.${name}`, true);
  }
}

function mtuOption(options: Options): number {
  const mtu = numberOption(options, 'driver.mtu') ?? 0;
  refuseIf(mtu < 0, `invalid MTU number: ${mtu}`);
  if (mtu > 0 && (mtu < 68 || mtu > 65_535)) throw new EngineError('invalid', `invalid MTU number: ${mtu}`);
  return mtu;
}

function hostBinding(options: Options): string {
  const found = optionOf(options, 'bridge.host_binding_ipv4');
  if (found === undefined) return ANY;
  if (parseIp(found.value)?.family !== 4) throw unreadable(found, 'nil ip');
  return found.value;
}
