import type { Networks } from './networks.ts';
import { parsePort } from './ports.ts';
import type { Attachment } from './sandbox.ts';
import type { Endpoint, Endpoints, NetworkSettings, NetworkWire, PortMap } from './schema.ts';
import type { NetworkRecord } from './store.ts';

/** A network with the containers that are in it at this moment. */
export function presentNetwork(networks: Networks, network: NetworkRecord): NetworkWire {
  const { id, name, driver, createdAt, bridge, subnet, gateway } = network;
  const { nameOf } = networks.settings;
  return {
    Name: name,
    Id: id,
    Created: createdAt.toString(),
    Scope: 'local',
    Driver: driver,
    EnableIPv6: false,
    IPAM: {
      Driver: 'default',
      Options: null,
      Config: subnet === undefined ? [] : [{ Subnet: subnet, Gateway: gateway }],
    },
    Internal: false,
    Attachable: false,
    Ingress: false,
    ConfigFrom: { Network: '' },
    ConfigOnly: false,
    Containers: Object.fromEntries(
      networks.membersOf(id).map((member) => [
        member.containerId,
        {
          Name: nameOf(member.containerId) ?? '',
          EndpointID: member.endpointId,
          MacAddress: member.macAddress,
          IPv4Address: member.ipAddress === '' ? '' : `${member.ipAddress}/${member.prefixLength}`,
          IPv6Address: '',
        },
      ]),
    ),
    Options: bridge === undefined ? {} : bridgeOptions(bridge, networks.mtu()),
    Labels: {},
  };
}

/** A container as far as its networks are concerned. */
export type Member = Readonly<{
  /** Where it is while it runs; also nowhere, when it has no network or another container's. */
  attachment: Attachment | undefined;
  /** Of the network that it was in last; empty before the first start. */
  networkId: string;
  /** HostConfig.NetworkMode as the client wrote it; `default` and nothing mean `bridge`. */
  networkMode: string;
  /** Config.NetworkDisabled */
  isDisabled: boolean;
  /** Keys of the configuration such as `80/tcp`. */
  exposed: readonly string[];
  /** Of its first process, while it runs. */
  pid: number | undefined;
}>;

/** The network that a mode names; a container that shares another one's network has none of its own. */
export function networkNameOf(networkMode: string): string | undefined {
  if (networkMode.startsWith('container:')) return undefined;
  return networkMode === '' || networkMode === 'default' ? 'bridge' : networkMode;
}

/** NetworkSettings of a container as inspect shows it: all of it while the container runs, else the network's name. */
export function networkSettings(member: Member): NetworkSettings {
  const { attachment, pid } = member;
  const hasSandbox = pid !== undefined && !member.isDisabled && networkNameOf(member.networkMode) !== undefined;
  // The top level repeats the endpoint of the default bridge only: it is from before there were networks.
  const bridged = isBridged(attachment) ? attachment : undefined;
  return {
    Bridge: '',
    SandboxID: attachment?.sandboxId ?? '',
    HairpinMode: false,
    LinkLocalIPv6Address: '',
    LinkLocalIPv6PrefixLen: 0,
    Ports: portMap(member),
    // A path that tools such as nsenter can open, as dockerd's is.
    SandboxKey: hasSandbox ? `/proc/${pid}/ns/net` : '',
    SecondaryIPAddresses: null,
    SecondaryIPv6Addresses: null,
    EndpointID: bridged?.endpointId ?? '',
    Gateway: bridged?.gateway ?? '',
    GlobalIPv6Address: '',
    GlobalIPv6PrefixLen: 0,
    IPAddress: bridged?.ipAddress ?? '',
    IPPrefixLen: bridged?.prefixLength ?? 0,
    IPv6Gateway: '',
    MacAddress: bridged?.macAddress ?? '',
    Networks: presentEndpoints(member),
  };
}

/** The endpoints of a container by network name, as lists and inspect show them. */
export function presentEndpoints({ attachment, networkId, networkMode, isDisabled }: Member): Endpoints {
  const name = networkNameOf(networkMode);
  if (name === undefined || isDisabled) return {};
  const endpoint: Endpoint = {
    IPAMConfig: null,
    Links: null,
    Aliases: null,
    NetworkID: attachment?.networkId ?? networkId,
    EndpointID: attachment?.endpointId ?? '',
    Gateway: attachment?.gateway ?? '',
    IPAddress: attachment?.ipAddress ?? '',
    IPPrefixLen: attachment?.prefixLength ?? 0,
    IPv6Gateway: '',
    GlobalIPv6Address: '',
    GlobalIPv6PrefixLen: 0,
    MacAddress: attachment?.macAddress ?? '',
    DriverOpts: null,
  };
  return { [name]: endpoint };
}

/** A port as GET /containers/json shows it. */
export type ListedPort = { IP?: string; PrivatePort: number; PublicPort?: number; Type: string };

/** The published ports of a container on a bridge, and those that it only exposes. */
export function listedPorts({ attachment, exposed }: Member): ListedPort[] {
  if (!isBridged(attachment)) return [];
  const published = attachment.ports.map(({ containerPort, hostPort, hostIp, protocol }) => ({
    IP: hostIp,
    PrivatePort: containerPort,
    PublicPort: hostPort,
    Type: protocol,
  }));
  const hidden = exposed
    .map(parsePort)
    .map(({ containerPort, protocol }) => ({ PrivatePort: containerPort, Type: protocol }))
    .filter((one) => !published.some(({ PrivatePort, Type }) => PrivatePort === one.PrivatePort && Type === one.Type));
  return [...published, ...hidden].toSorted((a, b) => a.PrivatePort - b.PrivatePort);
}

/** Every exposed port, with `null` when it is not published. */
function portMap({ attachment, exposed }: Member): PortMap {
  if (!isBridged(attachment)) return {};
  const map: PortMap = {};
  for (const key of exposed) {
    const { containerPort, protocol } = parsePort(key);
    map[`${containerPort}/${protocol}`] = null;
  }
  for (const { containerPort, protocol, hostIp, hostPort } of attachment.ports) {
    (map[`${containerPort}/${protocol}`] ??= []).push({ HostIp: hostIp, HostPort: String(hostPort) });
  }
  return Object.fromEntries(Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** Ports and addresses are there on a bridge only. */
function isBridged(attachment: Attachment | undefined): attachment is Attachment {
  return attachment !== undefined && attachment.ipAddress !== '';
}

/** Under the specification's names, and under those that clients know. */
function bridgeOptions(bridge: string, mtu: number): Record<string, string> {
  const options = {
    'bridge.default_bridge': 'true',
    'bridge.enable_icc': 'true',
    'bridge.enable_ip_masquerade': 'true',
    'bridge.host_binding_ipv4': '0.0.0.0',
    'bridge.name': bridge,
    'driver.mtu': String(mtu),
  };
  return Object.fromEntries(
    ['com.docker.network', 'com.engine.network'].flatMap((prefix) =>
      Object.entries(options).map(([key, value]) => [`${prefix}.${key}`, value]),
    ),
  );
}
