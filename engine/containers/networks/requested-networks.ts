import { refuseIf } from '../../lib/errors.ts';
import { networkModeOf, networkOfMode } from '../../networks/settings/mode.ts';
import type { CreateBody } from '../schema.ts';
import type { HostConfig, HostConfigBody } from '../settings/host-config/host-config-schema.ts';
import type { Attachment } from '../store.ts';

/** The meaning of fields of older versions. */
export type NetworkDefaults = Readonly<{
  /** Whether HostConfig.Sysctls may name an interface such as `eth0`. */
  takesInterfaceSysctls?: true;
  /** Whether an empty list in HostConfig.PortBindings publishes nothing. */
  leavesEmptyBindings?: true;
}>;

export const MAC_IS_DEPRECATED =
  'The container-wide MacAddress field is deprecated: set MacAddress of an endpoint in EndpointsConfig.';

/** Warns of a container-wide hardware address. Throws `invalid` if the endpoint of its network has another. */
export function macWarnings(
  { MacAddress = '' }: CreateBody,
  networkMode: string,
  attachments: Readonly<Record<string, Attachment>>,
): string[] {
  if (MacAddress === '') return [];
  const own = networkOfMode(networkModeOf(networkMode)) ?? '';
  const mac = (attachments[own] ?? Object.values(attachments)[0])?.macAddress ?? '';
  const reason = 'must match the endpoint-specific MAC address for the main network, or be left empty';
  refuseIf(mac !== '' && mac.toLowerCase() !== MacAddress.toLowerCase(), `the container-wide MAC address ${reason}`);
  return [MAC_IS_DEPRECATED];
}

/** Throws `invalid` for settings of an interface, whose name is only known with its endpoint. */
export function checkInterfaceSysctls({ takesInterfaceSysctls }: NetworkDefaults, { Sysctls }: HostConfigBody): void {
  if (takesInterfaceSysctls === true) return;
  const named = Object.keys(Sysctls ?? {}).find((key) => /^net\.(ipv4|ipv6|mpls)\.[^.]+\.eth\d+\./.test(key));
  const place = "must be supplied using driver option 'com.docker.network.endpoint.sysctls'";
  refuseIf(named !== undefined, `interface specific sysctl setting "${named}" ${place}`);
}

/** With any port for an empty list of bindings, and a warning that names them, as in dockerd 29. */
export function withFilledBindings<T extends Pick<HostConfig, 'PortBindings'>>(
  { leavesEmptyBindings }: NetworkDefaults,
  hostConfig: T,
): { hostConfig: T; warnings: string[] } {
  const { PortBindings } = hostConfig;
  const empty = Object.keys(PortBindings).filter((port) => PortBindings[port]?.length === 0);
  if (leavesEmptyBindings === true || empty.length === 0) return { hostConfig, warnings: [] };
  const filled = Object.fromEntries(empty.map((port) => [port, [{ HostIp: '', HostPort: '' }]]));
  const warning = `The ports ${empty.join(', ')} have an empty list of bindings: they are published on any port.`;
  return { hostConfig: { ...hostConfig, PortBindings: { ...PortBindings, ...filled } }, warnings: [warning] };
}
