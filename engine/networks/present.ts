import { poolsByFamily } from './addresses/pools.ts';
import { presentStatus } from './addresses/status.ts';
import { hasAddress, NO_PLACE, type Endpoint, type Place } from './endpoints/endpoint.ts';
import { parsePort, type PublishedPort } from './endpoints/ports.ts';
import type { Networks } from './networks.ts';
import { INGRESS_SANDBOX } from './overlay/services/ingress.ts';
import type { EndpointWire, Endpoints, NetworkSettings, NetworkWire, PortMap } from './schema.ts';
import { DEFAULT_NETWORK, networkOfMode, type NetworkMode } from './settings/mode.ts';
import type { NetworkRecord } from './store.ts';

/** A network, with the containers that are in it now. */
export function presentNetwork(
  networks: Networks,
  network: NetworkRecord,
  { withContainers = true, withStatus = false } = {},
): NetworkWire {
  const { id, name, driver, createdAt, ipv6, custom, overlay } = network;
  return {
    Name: name,
    Id: id,
    Created: createdAt.toString(),
    Scope: scopeOf(network),
    Driver: driver,
    EnableIPv4: custom?.enableIPv4 !== false,
    EnableIPv6: custom?.enableIPv6 ?? ipv6 !== undefined,
    IPAM: {
      Driver: custom?.ipam.driver ?? 'default',
      Options: custom?.ipam.options ?? null,
      Config: presentPools(network),
    },
    Internal: custom?.internal ?? false,
    Attachable: custom?.attachable ?? false,
    Ingress: overlay?.ingress ?? false,
    ConfigFrom: { Network: custom?.configFrom ?? '' },
    ConfigOnly: custom?.configOnly ?? false,
    Containers: Object.fromEntries(
      (withContainers ? networks.membersOf(id) : []).map((member) => [
        member.containerId,
        {
          Name: memberName(networks, network, member),
          EndpointID: member.id,
          MacAddress: member.macAddress,
          IPv4Address: member.ipAddress === '' ? '' : `${member.ipAddress}/${member.prefixLength}`,
          IPv6Address: member.ipv6 === undefined ? '' : `${member.ipv6.ipAddress}/${member.ipv6.prefixLength}`,
        },
      ]),
    ),
    Options: custom?.configOnly === true ? { ...custom.options } : networks.driverOf(network).options(network),
    Labels: custom?.labels ?? {},
    ...(withStatus && presentStatus(networks, network)),
  };
}

/** `swarm`: of the whole cluster. */
export function scopeOf({ overlay }: Pick<NetworkRecord, 'overlay'>): 'local' | 'swarm' {
  return overlay === undefined ? 'local' : 'swarm';
}

/** The sandbox of published ports is no container; dockerd has these names for its endpoints. */
function memberName(networks: Networks, { overlay }: NetworkRecord, { containerId }: Endpoint): string {
  if (containerId !== INGRESS_SANDBOX) return networks.settings.nameOf(containerId) ?? '';
  return overlay === undefined ? `gateway_${INGRESS_SANDBOX}` : 'ingress-endpoint';
}

/** As the client wrote them, or as chosen. */
function presentPools({ custom, subnet, gateway, ipv6 }: NetworkRecord): NetworkWire['IPAM']['Config'] {
  const { four, six } = poolsByFamily(custom?.ipam.pools ?? []);
  const chosen = four.length > 0 || subnet === undefined ? [] : [range({ subnet, gateway: gateway ?? '' })];
  const written = [...four, ...six].map((pool) => ({
    Subnet: pool.subnet,
    ...(pool.range !== undefined && { IPRange: pool.range }),
    ...(pool.gateway !== undefined && { Gateway: pool.gateway }),
    ...(pool.auxiliary !== undefined && { AuxiliaryAddresses: pool.auxiliary }),
  }));
  const ofSix = six.length > 0 || ipv6 === undefined ? [] : [range(ipv6)];
  return [...chosen, ...written, ...ofSix];
}

/** Isolated networks have no gateway. */
function range({ subnet, gateway }: { subnet: string; gateway: string }): { Subnet: string; Gateway?: string } {
  return { Subnet: subnet, ...(gateway !== '' && { Gateway: gateway }) };
}

/** A container's settings for a network, as stored. */
type Attached = Readonly<{
  ipam: EndpointWire['IPAMConfig'];
  links: readonly string[] | null;
  aliases: readonly string[] | null;
  driverOptions?: Readonly<Record<string, string>>;
  gwPriority?: number;
  dnsNames?: readonly string[];
  networkId: string;
  macAddress?: string;
}>;

/** The fields of a container that its networks need. */
export type Member = Readonly<{
  /** Its endpoints while it runs; none without a network, or with another container's. */
  endpoints: readonly Endpoint[];
  /** Its networks by name, also while it does not run. */
  attachments: Readonly<Record<string, Attached>>;
  /** It has not been started yet: a hardware address that was asked for is shown. */
  isNew: boolean;
  mode: NetworkMode;
  /** Config.NetworkDisabled */
  isDisabled: boolean;
  /** Keys of the configuration such as `80/tcp`. */
  exposed: readonly string[];
  /** The pid of its first process, while it runs. */
  pid: number | undefined;
}>;

/** NetworkSettings of an inspect: complete while the container runs, else only the network's name. */
export function networkSettings(member: Member): NetworkSettings {
  const { endpoints, pid } = member;
  const hasSandbox = pid !== undefined && !member.isDisabled && networkOfMode(member.mode) !== undefined;
  // The top level repeats only the endpoint of the default bridge; it is older than networks.
  const bridged = endpoints.find(({ networkName }) => networkName === DEFAULT_NETWORK);
  return {
    Bridge: '',
    SandboxID: endpoints[0]?.sandboxId ?? '',
    HairpinMode: false,
    LinkLocalIPv6Address: '',
    LinkLocalIPv6PrefixLen: 0,
    Ports: portMap(member),
    // A path that tools such as nsenter can open, as in dockerd.
    SandboxKey: hasSandbox ? `/proc/${pid}/ns/net` : '',
    SecondaryIPAddresses: null,
    SecondaryIPv6Addresses: null,
    EndpointID: bridged?.id ?? '',
    Gateway: bridged?.gateway ?? '',
    GlobalIPv6Address: bridged?.ipv6?.ipAddress ?? '',
    GlobalIPv6PrefixLen: bridged?.ipv6?.prefixLength ?? 0,
    IPAddress: bridged?.ipAddress ?? '',
    IPPrefixLen: bridged?.prefixLength ?? 0,
    IPv6Gateway: bridged?.ipv6?.gateway ?? '',
    MacAddress: bridged?.macAddress ?? '',
    Networks: presentEndpoints(member),
  };
}

/** The endpoints of a container by network name, as lists and inspect show them. */
export function presentEndpoints({
  endpoints,
  attachments,
  isNew,
}: Pick<Member, 'endpoints' | 'attachments' | 'isNew'>): Endpoints {
  const names = Object.keys(attachments).toSorted();
  return Object.fromEntries(
    names.map((name) => {
      const attached = attachments[name]!;
      const endpoint = endpoints.find(({ networkName }) => networkName === name);
      const { networkId, macAddress = '' } = attached;
      const none = { ...NO_PLACE, id: '', networkId, macAddress: isNew ? macAddress : '' };
      return [name, presentEndpoint(attached, endpoint ?? none)];
    }),
  );
}

function presentEndpoint(
  { ipam, links, aliases, driverOptions, gwPriority = 0, dnsNames }: Attached,
  endpoint: Place & Pick<Endpoint, 'id' | 'networkId'>,
): EndpointWire {
  return {
    IPAMConfig: ipam,
    Links: links === null ? null : [...links],
    Aliases: aliases === null ? null : [...aliases],
    NetworkID: endpoint.networkId,
    EndpointID: endpoint.id,
    Gateway: endpoint.gateway,
    IPAddress: endpoint.ipAddress,
    IPPrefixLen: endpoint.prefixLength,
    IPv6Gateway: endpoint.ipv6?.gateway ?? '',
    GlobalIPv6Address: endpoint.ipv6?.ipAddress ?? '',
    GlobalIPv6PrefixLen: endpoint.ipv6?.prefixLength ?? 0,
    MacAddress: endpoint.macAddress,
    DriverOpts: driverOptions === undefined ? null : { ...driverOptions },
    GwPriority: gwPriority,
    DNSNames: dnsNames === undefined ? null : [...dnsNames],
  };
}

/** A port as GET /containers/json shows it. */
type ListedPort = { IP?: string; PrivatePort: number; PublicPort?: number; Type: string };

/** The published ports of a container on a bridge, and those that it only exposes. */
export function listedPorts({ endpoints, exposed }: Pick<Member, 'endpoints' | 'exposed'>): ListedPort[] {
  if (!endpoints.some(hasAddress)) return [];
  const published = portsOf(endpoints).map(({ containerPort, hostPort, hostIp, protocol }) => ({
    IP: hostIp,
    PrivatePort: containerPort,
    ...(hostPort !== 0 && { PublicPort: hostPort }),
    Type: protocol,
  }));
  const hidden = exposed
    .map(parsePort)
    .map(({ containerPort, protocol }) => ({ PrivatePort: containerPort, Type: protocol }))
    .filter((one) => !published.some(({ PrivatePort, Type }) => PrivatePort === one.PrivatePort && Type === one.Type));
  return [...published, ...hidden].toSorted((a, b) => a.PrivatePort - b.PrivatePort);
}

/** Every exposed port, with `null` when it is not published. */
function portMap({ endpoints, exposed }: Member): PortMap {
  if (!endpoints.some(hasAddress)) return {};
  const map: PortMap = {};
  for (const key of exposed) {
    const { containerPort, protocol } = parsePort(key);
    map[`${containerPort}/${protocol}`] = null;
  }
  for (const { containerPort, protocol, hostIp, hostPort } of portsOf(endpoints)) {
    (map[`${containerPort}/${protocol}`] ??= []).push({
      HostIp: hostIp,
      HostPort: hostPort === 0 ? '' : String(hostPort),
    });
  }
  return Object.fromEntries(Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** The published ports of all endpoints of a container. */
export function portsOf(endpoints: readonly Endpoint[]): PublishedPort[] {
  return endpoints.flatMap(({ ports }) => ports);
}
