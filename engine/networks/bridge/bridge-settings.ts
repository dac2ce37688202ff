import { EngineError } from '../../lib/errors.ts';
import { parseIp } from '../../lib/notations/ip-address.ts';
import { storedAddresses } from '../addresses/choose.ts';
import type { NetworkAddresses } from '../addresses/pools.ts';
import { checkInterfaceName } from '../endpoints/interface-options.ts';
import { ANY } from '../endpoints/ports.ts';
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
    hostBinding: hostBinding(options),
    ...interfacePrefix(options),
  };
}

/** Throws `invalid` for options that are invalid for any network. */
export function checkBridgeOptions(options: Options): void {
  mtuOption(options);
  hostBinding(options);
  interfacePrefix(options);
  refuseGatewayModes(options);
  for (const name of ['enable_icc', 'enable_ip_masquerade', 'default_bridge']) {
    booleanOption(options, `bridge.${name}`, true);
  }
}

/** Throws `notImplemented` for ways out other than NAT: ignoring one would open or close ports unasked. */
function refuseGatewayModes(options: Options): void {
  for (const name of ['bridge.gateway_mode_ipv4', 'bridge.gateway_mode_ipv6']) {
    const found = optionOf(options, name);
    if (found === undefined || found.value === 'nat' || found.value === '') continue;
    if (!['routed', 'isolated', 'nat-unprotected'].includes(found.value)) {
      throw unreadable(found, `unknown gateway mode ${found.value}`);
    }
    throw new EngineError('notImplemented', `${found.key}=${found.value} is not implemented yet: use nat`);
  }
  const inhibited = booleanOption(options, 'bridge.inhibit_ipv4', false);
  if (inhibited) throw new EngineError('notImplemented', 'the option bridge.inhibit_ipv4 is not implemented yet');
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
