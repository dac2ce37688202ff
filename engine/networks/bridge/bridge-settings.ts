import { parseIp } from '../../lib/notations/ip-address.ts';
import { storedAddresses } from '../addresses/choose.ts';
import type { NetworkAddresses } from '../addresses/pools.ts';
import { checkInterfaceName } from '../endpoints/interface-options.ts';
import { ANY } from '../endpoints/ports.ts';
import { checkGatewayModes, gatewayModes, trustedInterfaces, type GatewayModes } from '../settings/gateway-modes.ts';
import { booleanOption, mtuOption, optionOf, unreadable, type Options } from '../settings/options.ts';
import type { NetworkRecord } from '../store.ts';

/** A network of the driver `bridge`, ready to be set up. */
export type BridgeSettings = NetworkAddresses &
  Readonly<{
    networkId: string;
    /** Name of the link. */
    name: string;
    mtu: number;
    /** Without a way out of the network, and without published ports. */
    isInternal: boolean;
    /** Whether its containers may talk to each other. */
    allowsTraffic: boolean;
    /** Whether its containers get out under the machine's address. */
    isMasqueraded: boolean;
    modes: GatewayModes;
    /** Whether the bridge has no address of IPv4: the gateway is another machine on it. */
    isInhibited: boolean;
    /** The machine's interfaces from which published ports are reached at the containers' own addresses. */
    trusted: readonly string[];
    /** The address for published ports without one. */
    hostBinding: string;
    /** The beginning of the names of its interfaces in containers; undefined: `eth`. */
    interfacePrefix?: string;
  }>;

/**
 * The beginning of the links of user networks. One pattern admits all of them in the machine's FORWARD chain; `br-`
 * would also admit dockerd's.
 */
export const USER_BRIDGE_PREFIX = 'gn-';

const ID_LETTERS = 12;

/** The name of a new network's link. */
export function bridgeNameOf({ id, custom }: Pick<NetworkRecord, 'id' | 'custom'>): string {
  return optionOf(custom?.options ?? {}, 'bridge.name')?.value || `${USER_BRIDGE_PREFIX}${id.slice(0, ID_LETTERS)}`;
}

/** The settings of a network whose addresses are known. Throws `invalid` for options that cannot be read. */
export function bridgeSettings(network: NetworkRecord, usualMtu: number): BridgeSettings {
  const { id, bridge, custom } = network;
  if (bridge === undefined) throw new Error(`the stored network ${id} has no bridge`);
  const options = custom?.options ?? {};
  return {
    networkId: id,
    name: bridge,
    ...storedAddresses(network),
    mtu: mtuOption(options) || usualMtu,
    isInternal: custom?.internal ?? false,
    allowsTraffic: booleanOption(options, 'bridge.enable_icc', true),
    isMasqueraded: booleanOption(options, 'bridge.enable_ip_masquerade', true),
    modes: gatewayModes(options),
    isInhibited: booleanOption(options, 'bridge.inhibit_ipv4', false),
    trusted: trustedInterfaces(options),
    hostBinding: hostBinding(options),
    ...interfacePrefix(options),
  };
}

/** Throws `invalid` for options that are invalid for any network. */
export function checkBridgeOptions(options: Options, isInternal: boolean): void {
  mtuOption(options);
  hostBinding(options);
  interfacePrefix(options);
  checkGatewayModes(gatewayModes(options), isInternal);
  trustedInterfaces(options);
  for (const name of ['enable_icc', 'enable_ip_masquerade', 'default_bridge', 'inhibit_ipv4']) {
    booleanOption(options, `bridge.${name}`, true);
  }
}

/** The bridge's own addresses, with the lengths of their prefixes. */
export function bridgeAddresses(settings: BridgeSettings): { ip: string; prefixLength: number }[] {
  const { ipv4, ipv6, isInhibited, modes } = settings;
  const ranges = [
    ...(ipv4 === undefined || isInhibited || modes[4] === 'isolated' ? [] : [ipv4]),
    ...(ipv6 === undefined || modes[6] === 'isolated' ? [] : [ipv6]),
  ];
  return ranges.map(({ gateway, subnet }) => ({ ip: gateway, prefixLength: subnet.prefixLength }));
}

function interfacePrefix(options: Options): { interfacePrefix?: string } {
  const found = optionOf(options, 'container_iface_prefix');
  if (found === undefined || found.value === '') return {};
  checkInterfaceName(found.key, `${found.value}0`);
  return { interfacePrefix: found.value };
}

function hostBinding(options: Options): string {
  const found = optionOf(options, 'bridge.host_binding_ipv4');
  if (found === undefined) return ANY;
  if (parseIp(found.value)?.family !== 4) throw unreadable(found, 'nil ip');
  return found.value;
}
