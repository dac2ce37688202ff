import { EngineError } from '../../lib/errors.ts';
import { ipText, parseIp } from '../../lib/notations/ip-address.ts';
import { parseCidr } from '../addresses/cidr.ts';
import type { NewEndpoint } from '../drivers/driver.ts';
import { checkedMac } from '../endpoints/checks.ts';
import type { Place } from '../endpoints/endpoint.ts';
import { parsePort, type ExposedPort, type WantedPort } from '../endpoints/ports.ts';
import type { NetworkRecord } from '../store.ts';
import type { CreatedInterface, JoinedEndpoint } from './network-protocol.ts';
import type { PluginRoute } from './place-link.ts';

const LABEL = 'com.docker.network';
/** Space of the addresses that the engine gives itself. */
const OWN_SPACE = 'LocalDefault';
const PROTOCOLS: Readonly<Record<ExposedPort['protocol'], number>> = { tcp: 6, udp: 17, sctp: 132 };

/** The body of `CreateNetwork`. */
export function networkBody(network: NetworkRecord): object {
  const { id, custom, subnet, gateway, ipv6, leased } = network;
  const space = leased?.space ?? OWN_SPACE;
  const four =
    subnet === undefined
      ? { AddressSpace: 'null', Pool: '0.0.0.0/0' }
      : poolBody(space, { subnet, gateway: gateway! }, auxiliaryOf(network, 4));
  return {
    NetworkID: id,
    Options: {
      [`${LABEL}.enable_ipv6`]: custom?.enableIPv6 ?? false,
      [`${LABEL}.generic`]: custom?.options ?? {},
      ...(custom?.internal === true && { [`${LABEL}.internal`]: true }),
    },
    IPv4Data: [four],
    IPv6Data: ipv6 === undefined ? [] : [poolBody(space, ipv6, auxiliaryOf(network, 6))],
  };
}

function poolBody(
  space: string,
  { subnet, gateway }: { subnet: string; gateway: string },
  auxiliary: Readonly<Record<string, string>>,
): object {
  const withLength = (ip: string): string => `${ip}/${subnet.split('/')[1]}`;
  const named = Object.entries(auxiliary).map(([name, ip]) => [name, withLength(ip)]);
  return {
    AddressSpace: space,
    ...(named.length > 0 && { AuxAddresses: Object.fromEntries(named) }),
    Gateway: withLength(gateway),
    Pool: subnet,
  };
}

function auxiliaryOf({ custom }: NetworkRecord, family: 4 | 6): Readonly<Record<string, string>> {
  const pools = custom?.ipam.pools ?? [];
  const pool = pools.find(({ subnet }) => (subnet === '' ? 4 : parseCidr(subnet)?.range.family) === family);
  return pool?.auxiliary ?? {};
}

/** The ports of a container, for the plugin that publishes them. */
export function portOptions({ ports, exposed }: Pick<NewEndpoint, 'ports' | 'exposed'>): Record<string, unknown> {
  const all = new Map(
    [...exposed.map(parsePort), ...ports].map(({ protocol, containerPort }) => [
      `${containerPort}/${protocol}`,
      { Proto: PROTOCOLS[protocol], Port: containerPort },
    ]),
  );
  return {
    [`${LABEL}.endpoint.exposedports`]: [...all.values()],
    [`${LABEL}.portmap`]: ports.map(bindingOf),
  };
}

function bindingOf({ protocol, containerPort, hostIp, range }: WantedPort): object {
  const { first = 0, last = 0 } = range ?? {};
  return {
    ...{ Proto: PROTOCOLS[protocol], IP: '', Port: containerPort },
    ...{ HostIP: hostIp, HostPort: first, HostPortEnd: last },
  };
}

/** The fields of `CreateEndpoint` besides the ids. */
export function endpointBody(place: Place, wanted: NewEndpoint): object {
  const { ipAddress, prefixLength, ipv6, macAddress } = place;
  return {
    Interface: {
      Address: ipAddress === '' ? '' : `${ipAddress}/${prefixLength}`,
      AddressIPv6: ipv6 === undefined ? '' : `${ipv6.ipAddress}/${ipv6.prefixLength}`,
      MacAddress: macAddress,
    },
    Options: {
      ...(wanted.mac !== undefined && {
        [`${LABEL}.endpoint.macaddress`]: Buffer.from(wanted.mac.replaceAll(':', ''), 'hex').toString('base64'),
      }),
      ...(wanted.startsContainer && portOptions(wanted)),
    },
  };
}

function refuse(what: string, present: string, other: string): never {
  const reason = `Cannot be modified with ${other}`;
  throw new EngineError('failed', `driver modified interface ${what} present (${present}). ${reason}`);
}

/** A place with what the plugin has chosen; it may not choose what was chosen already. Throws `failed`. */
export function withInterface(
  place: Place,
  { Address = '', AddressIPv6 = '', MacAddress = '' }: CreatedInterface,
): Place {
  if (MacAddress !== '' && place.macAddress !== '') {
    refuse('MAC address: endpoint interface MAC address', place.macAddress, MacAddress);
  }
  if (Address !== '' && place.ipAddress !== '') refuse('address: endpoint interface IP', place.ipAddress, Address);
  if (AddressIPv6 !== '' && place.ipv6 !== undefined) {
    refuse('address: endpoint interface IP', place.ipv6.ipAddress, AddressIPv6);
  }
  return {
    ...place,
    ...(Address !== '' && addressOf(Address)),
    ...(AddressIPv6 !== '' && { ipv6: { ...addressOf(AddressIPv6), gateway: '' } }),
    ...(MacAddress !== '' && { macAddress: checkedMac(MacAddress) }),
  };
}

function addressOf(text: string): { ipAddress: string; prefixLength: number } {
  const read = parseCidr(text);
  if (read === undefined) throw new EngineError('failed', `invalid CIDR address: ${text}`);
  return { ipAddress: ipText(read.address), prefixLength: read.range.prefixLength };
}

/** The gateways that a plugin names; the network's own do not count. Throws `failed`. */
export function withGateways(place: Place, { Gateway = '', GatewayIPv6 = '' }: JoinedEndpoint): Place {
  for (const [field, ip] of Object.entries({ Gateway, GatewayIPv6 })) {
    if (ip !== '' && parseIp(ip) === undefined) throw new EngineError('failed', `unable to parse ${field} "${ip}"`);
  }
  return {
    ...place,
    gateway: Gateway,
    ...(place.ipv6 !== undefined && { ipv6: { ...place.ipv6, gateway: GatewayIPv6 } }),
  };
}

const OVER_NEXT_HOP = 0;

/** Throws `failed` for a next hop that is no address. */
export function routesOf({ StaticRoutes }: JoinedEndpoint): PluginRoute[] {
  return (StaticRoutes ?? []).map(({ Destination: destination = '', RouteType = OVER_NEXT_HOP, NextHop = '' }) => {
    if (RouteType !== OVER_NEXT_HOP) return { destination, nextHop: undefined };
    if (parseIp(NextHop) === undefined) throw new EngineError('failed', `failed to parse nexthop IP ${NextHop}`);
    return { destination, nextHop: NextHop };
  });
}
