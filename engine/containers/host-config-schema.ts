import { Type, type Static, type TSchema } from 'typebox';

const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const strings = Type.Array(Type.String());

/** dockerd writes whole numbers; old clients send them in quotes. */
const Rate = Type.Union([Type.Integer(), Type.String({ pattern: '^[0-9]+$' })]);

export const ThrottleDevice = Type.Object({ Path: Type.String(), Rate });
export type ThrottleDevice = Static<typeof ThrottleDevice>;

export const WeightDevice = Type.Object({ Path: Type.String(), Weight: Type.Integer() });
export type WeightDevice = Static<typeof WeightDevice>;

export const DeviceMapping = Type.Object({
  PathOnHost: Type.String(),
  PathInContainer: Type.Optional(Type.String()),
  CgroupPermissions: Type.Optional(Type.String()),
});
export type DeviceMapping = Static<typeof DeviceMapping>;

export const Ulimit = Type.Object({
  Name: Type.String(),
  Soft: Type.Optional(Type.Integer()),
  Hard: Type.Optional(Type.Integer()),
});
export type Ulimit = Static<typeof Ulimit>;

export const PortBinding = Type.Object({
  HostIp: Type.Optional(Type.String()),
  HostPort: Type.Optional(Type.String()),
});
export const PortBindings = Type.Record(Type.String(), orNull(Type.Array(PortBinding)));
export type PortBindings = Static<typeof PortBindings>;

export const RestartPolicy = Type.Object({
  Name: Type.Optional(Type.String()),
  MaximumRetryCount: Type.Optional(Type.Integer()),
});

export const LogConfig = Type.Object({
  Type: Type.Optional(Type.String()),
  Config: Type.Optional(Type.Record(Type.String(), Type.String())),
});

/** How the container is tied to its host: limits, mounts, network, privileges. All fields present, as in an inspect. */
export const HostConfig = Type.Object({
  Binds: orNull(strings),
  ContainerIDFile: Type.String(),
  LogConfig: Type.Object({ Type: Type.String(), Config: Type.Record(Type.String(), Type.String()) }),
  NetworkMode: Type.String(),
  PortBindings: Type.Record(
    Type.String(),
    orNull(Type.Array(Type.Object({ HostIp: Type.String(), HostPort: Type.String() }))),
  ),
  RestartPolicy: Type.Object({ Name: Type.String(), MaximumRetryCount: Type.Integer() }),
  AutoRemove: Type.Boolean(),
  VolumeDriver: Type.String(),
  VolumesFrom: orNull(strings),
  CapAdd: orNull(strings),
  CapDrop: orNull(strings),
  Dns: orNull(strings),
  DnsOptions: orNull(strings),
  DnsSearch: orNull(strings),
  ExtraHosts: orNull(strings),
  GroupAdd: orNull(strings),
  IpcMode: Type.String(),
  Cgroup: Type.String(),
  Links: orNull(strings),
  OomScoreAdj: Type.Integer(),
  PidMode: Type.String(),
  Privileged: Type.Boolean(),
  PublishAllPorts: Type.Boolean(),
  ReadonlyRootfs: Type.Boolean(),
  SecurityOpt: orNull(strings),
  StorageOpt: Type.Optional(orNull(Type.Record(Type.String(), Type.String()))),
  Tmpfs: Type.Optional(Type.Record(Type.String(), Type.String())),
  UTSMode: Type.String(),
  UsernsMode: Type.String(),
  ShmSize: Type.Integer(),
  Sysctls: Type.Optional(Type.Record(Type.String(), Type.String())),
  Runtime: Type.String(),
  ConsoleSize: Type.Array(Type.Integer()),
  Isolation: Type.String(),
  CpuShares: Type.Integer(),
  Memory: Type.Integer(),
  CgroupParent: Type.String(),
  BlkioWeight: Type.Integer(),
  BlkioWeightDevice: orNull(Type.Array(WeightDevice)),
  BlkioDeviceReadBps: orNull(Type.Array(ThrottleDevice)),
  BlkioDeviceWriteBps: orNull(Type.Array(ThrottleDevice)),
  BlkioDeviceReadIOps: orNull(Type.Array(ThrottleDevice)),
  BlkioDeviceWriteIOps: orNull(Type.Array(ThrottleDevice)),
  CpuPeriod: Type.Integer(),
  CpuQuota: Type.Integer(),
  CpusetCpus: Type.String(),
  CpusetMems: Type.String(),
  Devices: orNull(Type.Array(DeviceMapping)),
  KernelMemory: Type.Integer(),
  MemoryReservation: Type.Integer(),
  MemorySwap: Type.Integer(),
  MemorySwappiness: orNull(Type.Integer()),
  OomKillDisable: orNull(Type.Boolean()),
  PidsLimit: orNull(Type.Integer()),
  Ulimits: orNull(Type.Array(Ulimit)),
  CpuCount: Type.Integer(),
  CpuPercent: Type.Integer(),
  IOMaximumIOps: Type.Integer(),
  IOMaximumBandwidth: Type.Integer(),
});
export type HostConfig = Static<typeof HostConfig>;

/** The same as a client sends it: every field may be missing. */
export const HostConfigBody = Type.Object({
  ...Type.Partial(HostConfig).properties,
  LogConfig: Type.Optional(LogConfig),
  PortBindings: Type.Optional(PortBindings),
  RestartPolicy: Type.Optional(RestartPolicy),
});
export type HostConfigBody = Static<typeof HostConfigBody>;
