import { Type, type Static } from 'typebox';

import { ManifestDescriptor } from '../images/schema.ts';
import { Endpoints, EndpointSettings, NetworkSettings } from '../networks/schema.ts';
import { ContainerConfig, ContainerConfigBody } from './settings/container-config-schema.ts';
import { HostConfig, HostConfigBody } from './settings/host-config/host-config-schema.ts';

const orNull = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) => Type.Union([schema, Type.Null()]);

export const ContainerRef = Type.Object({ ref: Type.String({ description: 'Id, name, or unique prefix of an id' }) });

export const NetworkingConfig = Type.Object({
  EndpointsConfig: Type.Optional(Type.Record(Type.String(), orNull(EndpointSettings))),
});
export type NetworkingConfig = Static<typeof NetworkingConfig>;

/** Old clients write fields of HostConfig beside it. */
export const CreateBody = Type.Object({
  ...HostConfigBody.properties,
  Cpuset: Type.Optional(Type.String()),
  ...ContainerConfigBody.properties,
  HostConfig: Type.Optional(HostConfigBody),
  NetworkingConfig: Type.Optional(NetworkingConfig),
});
export type CreateBody = Static<typeof CreateBody>;

export const CreateQuery = Type.Object({
  name: Type.Optional(Type.String()),
  platform: Type.Optional(Type.String({ description: 'Of the image, such as linux/arm64' })),
});
export const Created = Type.Object({ Id: Type.String(), Warnings: Type.Array(Type.String()) });
export type Created = Static<typeof Created>;

/** The fields that an update can change; 0 and empty texts change nothing. */
export const UpdateBody = Type.Object(
  (({ properties: of }) => ({
    BlkioWeight: of.BlkioWeight,
    CpuShares: of.CpuShares,
    CpuPeriod: of.CpuPeriod,
    CpuQuota: of.CpuQuota,
    CpuRealtimePeriod: of.CpuRealtimePeriod,
    CpuRealtimeRuntime: of.CpuRealtimeRuntime,
    CpusetCpus: of.CpusetCpus,
    CpusetMems: of.CpusetMems,
    NanoCpus: of.NanoCpus,
    Memory: of.Memory,
    MemorySwap: of.MemorySwap,
    MemoryReservation: of.MemoryReservation,
    KernelMemory: of.KernelMemory,
    PidsLimit: of.PidsLimit,
    BlkioWeightDevice: of.BlkioWeightDevice,
    BlkioDeviceReadBps: of.BlkioDeviceReadBps,
    BlkioDeviceWriteBps: of.BlkioDeviceWriteBps,
    BlkioDeviceReadIOps: of.BlkioDeviceReadIOps,
    BlkioDeviceWriteIOps: of.BlkioDeviceWriteIOps,
    RestartPolicy: of.RestartPolicy,
  }))(HostConfigBody),
);
export type UpdateBody = Static<typeof UpdateBody>;
export const Updated = Type.Object({ Warnings: Type.Array(Type.String()) });

export const ListQuery = Type.Object({
  all: Type.Optional(Type.Boolean({ default: false, description: 'Also stopped containers' })),
  limit: Type.Optional(
    Type.Integer({ description: 'The number of the last created containers, stopped ones included' }),
  ),
  since: Type.Optional(Type.String()),
  before: Type.Optional(Type.String()),
  size: Type.Optional(Type.Boolean({ default: false })),
  filters: Type.Optional(Type.String({ description: 'JSON map of a filter to its values' })),
});
export type ListQuery = Static<typeof ListQuery>;

export const InspectQuery = Type.Object({ size: Type.Optional(Type.Boolean({ default: false })) });
export const StartQuery = Type.Object({ detachKeys: Type.Optional(Type.String()) });
export const StopQuery = Type.Object({
  t: Type.Optional(Type.Integer({ description: 'Seconds until SIGKILL' })),
  signal: Type.Optional(Type.String({ description: 'Name or number, instead of the stop signal' })),
});
export type StopQuery = Static<typeof StopQuery>;
export const KillQuery = Type.Object({ signal: Type.Optional(Type.String({ description: 'Name or number' })) });
export const RenameQuery = Type.Object({ name: Type.Optional(Type.String()) });
export const TopQuery = Type.Object({ ps_args: Type.Optional(Type.String({ default: '-ef' })) });
export const RemoveQuery = Type.Object({
  v: Type.Optional(Type.Boolean({ default: false, description: 'Remove its anonymous volumes, too' })),
  force: Type.Optional(Type.Boolean({ default: false, description: 'Kill a running container first' })),
  link: Type.Optional(Type.Boolean({ default: false, description: 'Remove the link of this name only' })),
});

export const Mount = Type.Object({
  Type: Type.String(),
  Name: Type.Optional(Type.String()),
  Source: Type.String(),
  Destination: Type.String(),
  Driver: Type.Optional(Type.String()),
  Mode: Type.String(),
  RW: Type.Boolean(),
  Propagation: Type.String(),
});
export type Mount = Static<typeof Mount>;

export const Summary = Type.Object({
  Id: Type.String(),
  Names: Type.Array(Type.String()),
  Image: Type.String(),
  ImageID: Type.String(),
  ImageManifestDescriptor: Type.Optional(ManifestDescriptor),
  Command: Type.String(),
  Created: Type.Integer(),
  Ports: Type.Array(
    Type.Object({
      IP: Type.Optional(Type.String()),
      PrivatePort: Type.Integer(),
      PublicPort: Type.Optional(Type.Integer()),
      Type: Type.String(),
    }),
  ),
  SizeRw: Type.Optional(Type.Integer()),
  SizeRootFs: Type.Optional(Type.Integer()),
  Labels: Type.Record(Type.String(), Type.String()),
  State: Type.String(),
  Status: Type.String(),
  Health: Type.Object({ Status: Type.String(), FailingStreak: Type.Integer() }),
  HostConfig: Type.Object({
    NetworkMode: Type.String(),
    Annotations: Type.Optional(Type.Record(Type.String(), Type.String())),
  }),
  NetworkSettings: Type.Object({ Networks: Endpoints }),
  Mounts: Type.Array(Mount),
});
export type Summary = Static<typeof Summary>;

export const Inspect = Type.Object({
  Id: Type.String(),
  Created: Type.String(),
  Path: Type.String(),
  Args: Type.Array(Type.String()),
  State: Type.Object({
    Status: Type.String(),
    Running: Type.Boolean(),
    Paused: Type.Boolean(),
    Restarting: Type.Boolean(),
    OOMKilled: Type.Boolean(),
    Dead: Type.Boolean(),
    Pid: Type.Integer(),
    ExitCode: Type.Integer(),
    Error: Type.String(),
    StartedAt: Type.String(),
    FinishedAt: Type.String(),
    Health: Type.Optional(
      Type.Object({
        Status: Type.String(),
        FailingStreak: Type.Integer(),
        Log: Type.Array(
          Type.Object({ Start: Type.String(), End: Type.String(), ExitCode: Type.Integer(), Output: Type.String() }),
        ),
      }),
    ),
  }),
  Image: Type.String(),
  ImageManifestDescriptor: Type.Optional(ManifestDescriptor),
  ResolvConfPath: Type.String(),
  HostnamePath: Type.String(),
  HostsPath: Type.String(),
  LogPath: Type.String(),
  /** For a log driver with a receiver: not in docker's API. */
  LogDelivery: Type.Optional(Type.Object({ Lost: Type.Integer(), Error: Type.String() })),
  Name: Type.String(),
  RestartCount: Type.Integer(),
  Driver: Type.String(),
  Platform: Type.String(),
  MountLabel: Type.String(),
  ProcessLabel: Type.String(),
  AppArmorProfile: Type.String(),
  ExecIDs: orNull(Type.Array(Type.String())),
  HostConfig,
  GraphDriver: Type.Object({ Data: orNull(Type.Record(Type.String(), Type.String())), Name: Type.String() }),
  SizeRw: Type.Optional(Type.Integer()),
  SizeRootFs: Type.Optional(Type.Integer()),
  Mounts: Type.Array(Mount),
  Config: ContainerConfig,
  NetworkSettings,
});
export type Inspect = Static<typeof Inspect>;

export const Top = Type.Object({ Titles: Type.Array(Type.String()), Processes: Type.Array(Type.Array(Type.String())) });
export type Top = Static<typeof Top>;

export const LogsQuery = Type.Object({
  details: Type.Optional(Type.Boolean({ default: false })),
  follow: Type.Optional(Type.Boolean({ default: false })),
  stdout: Type.Optional(Type.Boolean({ default: false })),
  stderr: Type.Optional(Type.Boolean({ default: false })),
  timestamps: Type.Optional(Type.Boolean({ default: false })),
  since: Type.Optional(Type.String({ description: 'UNIX seconds or RFC 3339' })),
  until: Type.Optional(Type.String({ description: 'UNIX seconds or RFC 3339' })),
  tail: Type.Optional(Type.String({ description: '`all` or a number of lines' })),
});

export const AttachQuery = Type.Object({
  detachKeys: Type.Optional(Type.String()),
  logs: Type.Optional(Type.Boolean({ default: false })),
  stream: Type.Optional(Type.Boolean({ default: false })),
  stdin: Type.Optional(Type.Boolean({ default: false })),
  stdout: Type.Optional(Type.Boolean({ default: false })),
  stderr: Type.Optional(Type.Boolean({ default: false })),
});

export const Changes = orNull(
  Type.Array(
    Type.Object({ Path: Type.String(), Kind: Type.Integer({ description: '0 modified, 1 added, 2 deleted' }) }),
  ),
);
export type Changes = Static<typeof Changes>;

export const ArchiveQuery = Type.Object({ path: Type.Optional(Type.String({ description: 'In the container' })) });

export const FileList = Type.Object({
  Path: Type.String({ description: 'Without `.` and `..`' }),
  Entries: Type.Array(
    Type.Object({
      Name: Type.String(),
      Type: Type.Union([
        Type.Literal('directory'),
        Type.Literal('file'),
        Type.Literal('symlink'),
        Type.Literal('device'),
        Type.Literal('fifo'),
        Type.Literal('socket'),
      ]),
      Mode: Type.Integer({ description: 'Permissions' }),
      Size: Type.Integer({ description: 'Bytes' }),
      Modified: Type.String(),
      UID: Type.Integer(),
      GID: Type.Integer(),
      Target: Type.String({ description: 'The text of a link' }),
    }),
  ),
  Truncated: Type.Boolean({ description: 'The folder has more than 10,000 entries; the others are left out' }),
});
export type FileList = Static<typeof FileList>;

export const PutArchiveQuery = Type.Object({
  ...ArchiveQuery.properties,
  noOverwriteDirNonDir: Type.Optional(
    Type.Boolean({ description: 'A folder and anything else never replace each other' }),
  ),
  copyUIDGID: Type.Optional(Type.Boolean({ description: 'All files belong to the user of the container' })),
});

export const ResizeQuery = Type.Object({
  h: Type.Integer({ minimum: 0, maximum: 65_535, description: 'Characters' }),
  w: Type.Integer({ minimum: 0, maximum: 65_535, description: 'Characters' }),
});

export const WaitQuery = Type.Object({
  condition: Type.Optional(Type.String({ description: '`not-running`, `next-exit` or `removed`' })),
});
export const WaitResult = Type.Object({
  StatusCode: Type.Integer(),
  Error: Type.Optional(Type.Object({ Message: Type.String() })),
});
export type WaitResult = Static<typeof WaitResult>;

export const Pruned = Type.Object({
  ContainersDeleted: orNull(Type.Array(Type.String())),
  SpaceReclaimed: Type.Integer(),
});
