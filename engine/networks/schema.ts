import { Type, type Static } from 'typebox';

export const NetworkRef = Type.Object({ ref: Type.String({ description: 'Id, name, or unique prefix of an id' }) });

export const NetworksQuery = Type.Object({
  filters: Type.Optional(Type.String({ description: 'JSON map of driver, id, label, name or type to its values' })),
});

export const InspectNetworkQuery = Type.Object({
  scope: Type.Optional(Type.String({ description: 'local or swarm: only a network of this scope' })),
});

const orNull = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()]);
const INT64 = { minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER };
const Texts = Type.Record(Type.String(), Type.String());

const IpamConfig = Type.Object({
  Subnet: Type.Optional(Type.String()),
  IPRange: Type.Optional(Type.String()),
  Gateway: Type.Optional(Type.String()),
  AuxiliaryAddresses: Type.Optional(Texts),
});

/** One range of a new network; `AuxAddress` is an older name. */
const NewIpamConfig = Type.Object({
  Subnet: Type.Optional(Type.String()),
  IPRange: Type.Optional(Type.String()),
  Gateway: Type.Optional(Type.String()),
  AuxiliaryAddresses: Type.Optional(orNull(Texts)),
  AuxAddress: Type.Optional(orNull(Texts)),
});

/** A network as lists and inspects show it. */
export const NetworkWire = Type.Object({
  Name: Type.String(),
  Id: Type.String(),
  Created: Type.String(),
  Scope: Type.Union([Type.Literal('local'), Type.Literal('swarm')]),
  Driver: Type.String(),
  EnableIPv4: Type.Boolean(),
  EnableIPv6: Type.Boolean(),
  IPAM: Type.Object({ Driver: Type.String(), Options: orNull(Texts), Config: Type.Array(IpamConfig) }),
  Internal: Type.Boolean(),
  Attachable: Type.Boolean(),
  Ingress: Type.Boolean(),
  ConfigFrom: Type.Object({ Network: Type.String() }),
  ConfigOnly: Type.Boolean(),
  Containers: Type.Record(
    Type.String(),
    Type.Object({
      Name: Type.String(),
      EndpointID: Type.String(),
      MacAddress: Type.String(),
      IPv4Address: Type.String(),
      IPv6Address: Type.String(),
    }),
  ),
  Options: Texts,
  Labels: Texts,
  Status: Type.Optional(
    Type.Object({
      IPAM: Type.Object({
        Subnets: Type.Record(
          Type.String(),
          Type.Object({ IPsInUse: Type.Integer(), DynamicIPsAvailable: Type.Integer() }),
        ),
      }),
    }),
  ),
});
export type NetworkWire = Static<typeof NetworkWire>;

export const CreateNetworkBody = Type.Object({
  Name: Type.Optional(Type.String()),
  CheckDuplicate: Type.Optional(Type.Boolean({ default: false })),
  Driver: Type.Optional(Type.String({ default: 'bridge' })),
  Internal: Type.Optional(Type.Boolean({ default: false })),
  EnableIPv4: Type.Optional(orNull(Type.Boolean({ default: true }))),
  EnableIPv6: Type.Optional(Type.Boolean({ default: false })),
  Attachable: Type.Optional(Type.Boolean({ default: false })),
  IPAM: Type.Optional(
    orNull(
      Type.Object({
        Driver: Type.Optional(Type.String()),
        Options: Type.Optional(orNull(Texts)),
        Config: Type.Optional(orNull(Type.Array(orNull(NewIpamConfig)))),
      }),
    ),
  ),
  Options: Type.Optional(orNull(Texts)),
  Labels: Type.Optional(orNull(Texts)),
  Ingress: Type.Optional(Type.Boolean({ description: 'The network of published ports; only of a cluster' })),
  ConfigOnly: Type.Optional(Type.Boolean({ description: 'Only settings, for other networks' })),
  ConfigFrom: Type.Optional(orNull(Type.Object({ Network: Type.Optional(Type.String()) }))),
});
export type CreateNetworkBody = Static<typeof CreateNetworkBody>;

export const CreatedNetwork = Type.Object({ Id: Type.String(), Warning: Type.String() });

/** The settings of an endpoint in a request. */
export const EndpointSettings = Type.Object({
  IPAMConfig: Type.Optional(
    orNull(
      Type.Object({
        IPv4Address: Type.Optional(Type.String()),
        IPv6Address: Type.Optional(Type.String()),
        LinkLocalIPs: Type.Optional(orNull(Type.Array(Type.String()))),
      }),
    ),
  ),
  Links: Type.Optional(orNull(Type.Array(Type.String()))),
  Aliases: Type.Optional(orNull(Type.Array(Type.String()))),
  MacAddress: Type.Optional(Type.String()),
  DriverOpts: Type.Optional(orNull(Type.Record(Type.String(), Type.String()))),
  GwPriority: Type.Optional(
    Type.Integer({ description: 'The endpoint with the highest gives the default route', ...INT64 }),
  ),
});
export type EndpointSettings = Static<typeof EndpointSettings>;

export const ConnectBody = Type.Object({
  Container: Type.Optional(Type.String()),
  EndpointConfig: Type.Optional(orNull(EndpointSettings)),
});
export type ConnectBody = Static<typeof ConnectBody>;
export const DisconnectBody = Type.Object({
  Container: Type.Optional(Type.String()),
  Force: Type.Optional(Type.Boolean({ default: false })),
});

/** A network endpoint as lists and inspects of containers show it. */
export const EndpointWire = Type.Object({
  IPAMConfig: orNull(Type.Object({}, { additionalProperties: true })),
  Links: orNull(Type.Array(Type.String())),
  Aliases: orNull(Type.Array(Type.String())),
  NetworkID: Type.String(),
  EndpointID: Type.String(),
  Gateway: Type.String(),
  IPAddress: Type.String(),
  IPPrefixLen: Type.Integer(),
  IPv6Gateway: Type.String(),
  GlobalIPv6Address: Type.String(),
  GlobalIPv6PrefixLen: Type.Integer(),
  MacAddress: Type.String(),
  DriverOpts: orNull(Type.Record(Type.String(), Type.String())),
  GwPriority: Type.Integer(),
  DNSNames: orNull(Type.Array(Type.String())),
});
export type EndpointWire = Static<typeof EndpointWire>;

export const Endpoints = Type.Record(Type.String(), EndpointWire);
export type Endpoints = Static<typeof Endpoints>;

export const PortMap = Type.Record(
  Type.String(),
  orNull(Type.Array(Type.Object({ HostIp: Type.String(), HostPort: Type.String() }))),
);
export type PortMap = Static<typeof PortMap>;

/** NetworkSettings of a container's inspect. */
export const NetworkSettings = Type.Object({
  Bridge: Type.String(),
  SandboxID: Type.String(),
  HairpinMode: Type.Boolean(),
  LinkLocalIPv6Address: Type.String(),
  LinkLocalIPv6PrefixLen: Type.Integer(),
  Ports: PortMap,
  SandboxKey: Type.String(),
  SecondaryIPAddresses: Type.Null(),
  SecondaryIPv6Addresses: Type.Null(),
  EndpointID: Type.String(),
  Gateway: Type.String(),
  GlobalIPv6Address: Type.String(),
  GlobalIPv6PrefixLen: Type.Integer(),
  IPAddress: Type.String(),
  IPPrefixLen: Type.Integer(),
  IPv6Gateway: Type.String(),
  MacAddress: Type.String(),
  Networks: Endpoints,
});
export type NetworkSettings = Static<typeof NetworkSettings>;

export const PrunedNetworks = Type.Object({ NetworksDeleted: Type.Union([Type.Array(Type.String()), Type.Null()]) });
