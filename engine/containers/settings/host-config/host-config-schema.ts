import { Type, type Static, type TSchema } from 'typebox';

const orNull = <T extends TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const strings = Type.Array(Type.String());

/** dockerd writes whole numbers; old clients send them in quotes. */
const Rate = Type.Union([Type.Integer(), Type.String({ pattern: '^[0-9]+$' })]);

export const ThrottleDevice = Type.Object({ Path: Type.String(), Rate });
export type ThrottleDevice = Static<typeof ThrottleDevice>;

const WeightDevice = Type.Object({ Path: Type.String(), Weight: Type.Integer() });
type WeightDevice = Static<typeof WeightDevice>;

const DeviceMapping = Type.Object({
  PathOnHost: Type.String(),
  PathInContainer: Type.Optional(Type.String()),
  CgroupPermissions: Type.Optional(Type.String()),
});
type DeviceMapping = Static<typeof DeviceMapping>;

export const Ulimit = Type.Object({
  Name: Type.String(),
  Soft: Type.Optional(Type.Integer()),
  Hard: Type.Optional(Type.Integer()),
});
export type Ulimit = Static<typeof Ulimit>;

const PortBinding = Type.Object({
  HostIp: Type.Optional(Type.String()),
  HostPort: Type.Optional(Type.String()),
});
export const PortBindings = Type.Record(Type.String(), orNull(Type.Array(PortBinding)));
export type PortBindings = Static<typeof PortBindings>;

/**
 * A mount by newer clients: a volume, a folder of the host or a tmpfs, with all options of `Binds`, `Tmpfs` and
 * `Volumes`.
 */
export const MountSpec = Type.Object({
  Type: Type.Optional(Type.String({ description: 'bind, volume, tmpfs or image' })),
  Source: Type.Optional(Type.String()),
  Target: Type.Optional(Type.String()),
  ReadOnly: Type.Optional(Type.Boolean()),
  Consistency: Type.Optional(Type.String({ description: 'Without effect on Linux' })),
  BindOptions: Type.Optional(
    Type.Object({
      Propagation: Type.Optional(Type.String()),
      NonRecursive: Type.Optional(Type.Boolean({ description: 'Without the mounts below the source' })),
      CreateMountpoint: Type.Optional(Type.Boolean({ description: 'A missing source is created' })),
      ReadOnlyNonRecursive: Type.Optional(Type.Boolean({ description: 'The mounts below stay writable' })),
      ReadOnlyForceRecursive: Type.Optional(Type.Boolean({ description: 'An error if they would stay writable' })),
    }),
  ),
  VolumeOptions: Type.Optional(
    Type.Object({
      NoCopy: Type.Optional(Type.Boolean()),
      Subpath: Type.Optional(Type.String({ description: 'Path in the volume' })),
      Labels: Type.Optional(Type.Record(Type.String(), Type.String())),
      DriverConfig: Type.Optional(
        Type.Object({
          Name: Type.Optional(Type.String()),
          Options: Type.Optional(Type.Record(Type.String(), Type.String())),
        }),
      ),
    }),
  ),
  ImageOptions: Type.Optional(
    Type.Object({ Subpath: Type.Optional(Type.String({ description: 'Path in the image' })) }),
  ),
  TmpfsOptions: Type.Optional(
    Type.Object({
      SizeBytes: Type.Optional(Type.Integer()),
      Mode: Type.Optional(Type.Integer()),
      Options: Type.Optional(orNull(Type.Array(strings))),
    }),
  ),
});
export type MountSpec = Static<typeof MountSpec>;

export const RestartPolicy = Type.Object({
  Name: Type.Optional(Type.String()),
  MaximumRetryCount: Type.Optional(Type.Integer()),
});

export const LogConfig = Type.Object({
  Type: Type.Optional(Type.String()),
  Config: Type.Optional(Type.Record(Type.String(), Type.String())),
});

const DeviceRequest = Type.Object({
  Driver: Type.Optional(Type.String()),
  Count: Type.Optional(Type.Integer()),
  DeviceIDs: Type.Optional(orNull(strings)),
  Capabilities: Type.Optional(orNull(Type.Array(strings))),
  Options: Type.Optional(orNull(Type.Record(Type.String(), Type.String()))),
});
export type DeviceRequest = Static<typeof DeviceRequest>;

/**
 * How the container is tied to its host: limits, mounts, network, privileges. All fields are present, as in an inspect,
 * except for the optional ones, of later versions of the API, in older records.
 */
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
  CgroupnsMode: Type.Optional(Type.String({ description: 'host or private' })),
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
  Annotations: Type.Optional(Type.Record(Type.String(), Type.String())),
  Isolation: Type.String(),
  CpuShares: Type.Integer(),
  Memory: Type.Integer(),
  NanoCpus: Type.Optional(Type.Integer({ description: 'Billionths of a CPU' })),
  CgroupParent: Type.String(),
  BlkioWeight: Type.Integer(),
  BlkioWeightDevice: orNull(Type.Array(WeightDevice)),
  BlkioDeviceReadBps: orNull(Type.Array(ThrottleDevice)),
  BlkioDeviceWriteBps: orNull(Type.Array(ThrottleDevice)),
  BlkioDeviceReadIOps: orNull(Type.Array(ThrottleDevice)),
  BlkioDeviceWriteIOps: orNull(Type.Array(ThrottleDevice)),
  CpuPeriod: Type.Integer(),
  CpuQuota: Type.Integer(),
  CpuRealtimePeriod: Type.Optional(Type.Integer()),
  CpuRealtimeRuntime: Type.Optional(Type.Integer()),
  CpusetCpus: Type.String(),
  CpusetMems: Type.String(),
  Devices: orNull(Type.Array(DeviceMapping)),
  DeviceCgroupRules: Type.Optional(orNull(strings)),
  DeviceRequests: Type.Optional(orNull(Type.Array(DeviceRequest))),
  KernelMemory: Type.Integer(),
  KernelMemoryTCP: Type.Optional(Type.Integer()),
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
  Mounts: Type.Optional(orNull(Type.Array(MountSpec))),
  MaskedPaths: Type.Optional(orNull(strings)),
  ReadonlyPaths: Type.Optional(orNull(strings)),
  Init: Type.Optional(orNull(Type.Boolean())),
  Umask: Type.Optional(Type.Integer({ description: 'Of the first process' })),
});
export type HostConfig = Static<typeof HostConfig>;

/** The body of a client, in which every field may be missing. */
export const HostConfigBody = Type.Object({
  ...Type.Partial(HostConfig).properties,
  LogConfig: Type.Optional(LogConfig),
  PortBindings: Type.Optional(PortBindings),
  RestartPolicy: Type.Optional(RestartPolicy),
});
export type HostConfigBody = Static<typeof HostConfigBody>;
