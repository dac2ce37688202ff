import type { Attachment } from './attach.ts';
import type { Networks } from './networks.ts';
import { parsePort, type PublishedPort } from './ports.ts';
import type { EndpointWire, NetworkSettingsWire, NetworkWire } from './schema.ts';
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

type Sight = Readonly<{
  containerId: string;
  /** HostConfig.NetworkMode as the client wrote it; `default` and nothing mean `bridge`. */
  networkMode: string;
  /** Keys such as `80/tcp`: those of the configuration and those of the bindings. */
  exposed: readonly string[];
  /** Of the container's first process, while it runs. */
  pid?: number;
}>;

/** NetworkSettings of a container as inspect shows it: all of it while the container runs, else the network's name. */
export function networkSettings(
  networks: Networks,
  { containerId, networkMode, exposed, pid }: Sight,
): NetworkSettingsWire {
  const attachment = networks.attachmentOf(containerId);
  const bridged = attachment !== undefined && attachment.ipAddress !== '';
  return {
    Bridge: '',
    SandboxID: attachment?.sandboxId ?? '',
    HairpinMode: false,
    LinkLocalIPv6Address: '',
    LinkLocalIPv6PrefixLen: 0,
    Ports: bridged ? portMap(attachment.ports, exposed) : {},
    // A path that tools such as nsenter can open, as dockerd's is.
    SandboxKey: attachment === undefined || pid === undefined ? '' : `/proc/${pid}/ns/net`,
    SecondaryIPAddresses: null,
    SecondaryIPv6Addresses: null,
    // The top level repeats the endpoint of the default bridge only: it is from before there were networks.
    EndpointID: bridged ? attachment.endpointId : '',
    Gateway: attachment?.gateway ?? '',
    GlobalIPv6Address: '',
    GlobalIPv6PrefixLen: 0,
    IPAddress: attachment?.ipAddress ?? '',
    IPPrefixLen: attachment?.prefixLength ?? 0,
    IPv6Gateway: '',
    MacAddress: attachment?.macAddress ?? '',
    Networks: presentEndpoints(networks, { containerId, networkMode }),
  };
}

/** The endpoints of a container by network name, as lists and inspect show them. */
export function presentEndpoints(
  networks: Networks,
  { containerId, networkMode }: Pick<Sight, 'containerId' | 'networkMode'>,
): Record<string, EndpointWire> {
  if (networkMode.startsWith('container:')) return {};
  const attachment = networks.attachmentOf(containerId);
  if (attachment !== undefined) return { [attachment.networkName]: endpoint(attachment) };
  const name = networkMode === '' || networkMode === 'default' ? 'bridge' : networkMode;
  return { [name]: endpoint(undefined, networks.list().find((network) => network.name === name)?.id) };
}

function endpoint(attachment: Attachment | undefined, networkId = ''): EndpointWire {
  return {
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
}

/** Every exposed port, with `null` when it is not published. */
function portMap(ports: readonly PublishedPort[], exposed: readonly string[]): NetworkSettingsWire['Ports'] {
  const map: NetworkSettingsWire['Ports'] = {};
  for (const key of exposed) {
    const { containerPort, protocol } = parsePort(key);
    map[`${containerPort}/${protocol}`] = null;
  }
  for (const { containerPort, protocol, hostIp, hostPort } of ports) {
    (map[`${containerPort}/${protocol}`] ??= []).push({ HostIp: hostIp, HostPort: String(hostPort) });
  }
  return Object.fromEntries(Object.entries(map).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function bridgeOptions(bridge: string, mtu: number): Record<string, string> {
  return {
    'com.docker.network.bridge.default_bridge': 'true',
    'com.docker.network.bridge.enable_icc': 'true',
    'com.docker.network.bridge.enable_ip_masquerade': 'true',
    'com.docker.network.bridge.host_binding_ipv4': '0.0.0.0',
    'com.docker.network.bridge.name': bridge,
    'com.docker.network.driver.mtu': String(mtu),
  };
}
