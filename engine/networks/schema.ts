import { Type, type Static } from 'typebox';

export const NetworkRef = Type.Object({ ref: Type.String({ description: 'Id, name, or unique prefix of an id' }) });

export const NetworksQuery = Type.Object({
  filters: Type.Optional(Type.String({ description: 'JSON map of driver, id, label, name or type to its values' })),
});

const orNull = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()]);
const Texts = Type.Record(Type.String(), Type.String());

const IpamConfig = Type.Object({
  Subnet: Type.Optional(Type.String()),
  IPRange: Type.Optional(Type.String()),
  Gateway: Type.Optional(Type.String()),
});

/** A network as lists and inspects show it. */
export const NetworkWire = Type.Object({
  Name: Type.String(),
  Id: Type.String(),
  Created: Type.String(),
  Scope: Type.Literal('local'),
  Driver: Type.String(),
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
});
export type NetworkWire = Static<typeof NetworkWire>;

export const CreateNetworkBody = Type.Object({
  Name: Type.Optional(Type.String()),
  CheckDuplicate: Type.Optional(Type.Boolean({ default: false })),
  Driver: Type.Optional(Type.String({ default: 'bridge' })),
  Internal: Type.Optional(Type.Boolean({ default: false })),
  EnableIPv6: Type.Optional(Type.Boolean({ default: false })),
  Options: Type.Optional(orNull(Texts)),
  Labels: Type.Optional(orNull(Texts)),
});

export const ConnectBody = Type.Object({ Container: Type.Optional(Type.String()) });
export const DisconnectBody = Type.Object({
  Container: Type.Optional(Type.String()),
  Force: Type.Optional(Type.Boolean({ default: false })),
});

type PortMap = Record<string, { HostIp: string; HostPort: string }[] | null>;

/** An endpoint in a container's NetworkSettings.Networks. */
export type EndpointWire = {
  IPAMConfig: null;
  Links: null;
  Aliases: null;
  NetworkID: string;
  EndpointID: string;
  Gateway: string;
  IPAddress: string;
  IPPrefixLen: number;
  IPv6Gateway: string;
  GlobalIPv6Address: string;
  GlobalIPv6PrefixLen: number;
  MacAddress: string;
  DriverOpts: null;
};

/** NetworkSettings of a container's inspect. */
export type NetworkSettingsWire = {
  Bridge: string;
  SandboxID: string;
  HairpinMode: boolean;
  LinkLocalIPv6Address: string;
  LinkLocalIPv6PrefixLen: number;
  Ports: PortMap;
  SandboxKey: string;
  SecondaryIPAddresses: null;
  SecondaryIPv6Addresses: null;
  EndpointID: string;
  Gateway: string;
  GlobalIPv6Address: string;
  GlobalIPv6PrefixLen: number;
  IPAddress: string;
  IPPrefixLen: number;
  IPv6Gateway: string;
  MacAddress: string;
  Networks: Record<string, EndpointWire>;
};
