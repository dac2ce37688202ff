import type { IdMap } from '../host/users/id-map.ts';
import type { DeviceEdits } from './cdi/devices.ts';
import type { ContainerUser } from './user.ts';

/** By the names of the kernel, such as `nofile`; a negative number is no limit. */
export type Ulimits = Readonly<Record<string, Readonly<{ soft: number; hard: number }>>>;

/** Capabilities by docker's names, `ALL` for every one. */
export type WantedCapabilities = Readonly<{
  add: readonly string[] | null;
  drop: readonly string[] | null;
  privileged: boolean;
}>;

/** One process: the first one of a container, an exec, a step of a build, a plugin. */
export type ProcessDescription = Readonly<{
  args: readonly string[];
  env: readonly string[];
  cwd: string;
  terminal: boolean;
  /** Size of the terminal, in characters. */
  size?: Readonly<{ width: number; height: number }>;
  user: ContainerUser;
  capabilities: WantedCapabilities;
  noNewPrivileges: boolean;
  /** A profile of AppArmor; empty where there is none. */
  appArmorProfile: string;
  oomScoreAdj: number;
  ulimits: Ulimits;
  /** The runtime's own, if undefined. */
  umask?: number | undefined;
}>;

/** Paths of namespaces to join; undefined is a new one, `host` is the host's. */
export type Namespaces = Readonly<Record<'network' | 'pid' | 'ipc' | 'uts', string | undefined>>;

/** A mount besides those that every process needs. */
export type DescribedMount = Readonly<{
  type: 'bind' | 'volume' | 'tmpfs' | 'image';
  /** For the runtime. */
  source: string;
  /** The source's path for this daemon, if it is another one. */
  visibleAt?: string;
  destination: string;
  writable: boolean;
  propagation: string;
  /** Options of a tmpfs, in the form of a mount. */
  options?: string;
  /** False: without the mounts below the source. */
  recursive?: false;
  /** Whether the mounts below the source are read-only too, if this one is. */
  readOnlyBelow?: boolean;
}>;

export type ThrottledDevice = Readonly<{ path: string; rate: number }>;

/** 0, an empty or a missing value is no limit. */
export type Limits = Readonly<{
  memoryBytes: number;
  memoryReservationBytes: number;
  memorySwapBytes: number;
  kernelMemoryBytes: number;
  /** Limit of TCP buffers; version 1 of cgroups alone. */
  kernelTcpBytes: number;
  /** 0 is a limit here; -1 is none. */
  swappiness: number;
  oomKillDisable: boolean;
  cpuShares: number;
  /** Microseconds in each period; a negative one is none. */
  cpuQuotaUs: number;
  cpuPeriodUs: number;
  realtimePeriodUs: number;
  realtimeRuntimeUs: number;
  /** Billionths of a CPU, instead of quota and period. */
  nanoCpus: number;
  cpusetCpus: string;
  cpusetMems: string;
  pids: number;
  blkioWeight: number;
  blkioWeightDevices: readonly Readonly<{ path: string; weight: number }>[];
  readBps: readonly ThrottledDevice[];
  writeBps: readonly ThrottledDevice[];
  readIops: readonly ThrottledDevice[];
  writeIops: readonly ThrottledDevice[];
}>;

/** A device of the host, or a folder of them; `access` is of `rwm`. */
type WantedDevice = Readonly<{
  path: string;
  inContainer: string;
  access: string;
  /** Mode and owners of the node in the container. Default: the host's. */
  fileMode?: number | undefined;
  uid?: number | undefined;
  gid?: number | undefined;
}>;

/** The description of a process and its surroundings, from which `config.json` is made. */
export type SpecDescription = Readonly<{
  process: ProcessDescription;
  /** Whether a small program is the first process, and reaps orphans. */
  wantsInit: boolean;
  hostname: string;
  domainname: string;
  /** `path` is for the runtime; this daemon sees the same folder at `visibleAt`. */
  root: Readonly<{ path: string; visibleAt: string; isReadOnly: boolean }>;
  /** All devices, and nothing hidden or filtered. */
  privileged: boolean;
  namespaces: Namespaces;
  /** A user namespace to join, with its map; undefined for the host's. */
  users: Readonly<{ path: string; map: IdMap }> | undefined;
  ownCgroupNamespace: boolean;
  /** By systemd: `slice:prefix:name`. */
  cgroup: Readonly<{ path: string; bySystemd: boolean }>;
  mounts: readonly DescribedMount[];
  /** Options by destination. */
  tmpfs: Readonly<Record<string, string>>;
  /** The daemon's files for /etc; undefined where it has none. */
  files: Readonly<{ hostname: string; hosts: string; resolvConf: string }> | undefined;
  /** /dev/shm: a new one of this size, a path on the host, or none. */
  shm: Readonly<{ sizeBytes: number }> | Readonly<{ path: string; isHosts: boolean }> | undefined;
  limits: Limits;
  devices: readonly WantedDevice[];
  /** Mounts and hooks of devices that vendors describe. */
  deviceMounts: DeviceEdits['mounts'];
  hooks: DeviceEdits['hooks'];
  /** Such as `c 10:200 rwm`. */
  deviceRules: readonly string[];
  sysctls: Readonly<Record<string, string>>;
  /** For the runtime and its hooks. */
  annotations: Readonly<Record<string, string>>;
  /** Whether /sys/fs/cgroup is writable, as for a privileged one. */
  writableCgroups: boolean;
  /** Undefined: the usual ones. */
  maskedPaths: readonly string[] | undefined;
  readonlyPaths: readonly string[] | undefined;
  /** JSON of a filter, `unconfined`, or undefined for the usual one. */
  seccomp: string | undefined;
  /** Whether the usual filter keeps files in the project that limits their size. */
  keepsProject: boolean;
}>;
