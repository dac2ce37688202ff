import type { GenericResource } from '../../lib/notations/generic-resources.ts';

export type Labels = Readonly<Record<string, string>>;
export type Resources = Readonly<{ nanoCpus: number; memoryBytes: number }>;
export type LogDriver = Readonly<{ name: string; options: Labels }>;

/** Fields that clients left out are missing; `defaults.ts` has their meaning. */
export type TaskTemplate = Readonly<{
  container: TaskContainer;
  logDriver?: LogDriver;
  resources?: Readonly<{
    limits?: Partial<Resources & Readonly<{ pids: number }>>;
    reservations?: Partial<Resources & Readonly<{ generic: readonly GenericResource[] }>>;
    /** -1: as much as there is. */
    swapBytes?: number;
    /** Percent; -1: the kernel's. */
    memorySwappiness?: number;
  }>;
  restart?: Readonly<{
    condition: 'none' | 'on-failure' | 'any';
    delayNs?: number;
    /** 0: no limit. */
    maxAttempts: number;
    /** 0: since ever. */
    windowNs?: number;
  }>;
  constraints?: readonly string[];
  placement?: Placement;
  /** Counter of forced updates: a new number makes tasks old. */
  forceUpdate?: number;
}>;

/** Conditions on the nodes of tasks beside the constraints. */
export type Placement = Readonly<{
  /** Labels whose values get equal numbers of tasks: `node.labels.rack`. */
  spreadOver?: readonly string[];
  /** Tasks of the service on one node; 0: any number. */
  maxReplicas?: number;
  /** Platforms of the image, one of which the node has; an empty field stands for any. */
  platforms?: readonly Readonly<{ architecture: string; os: string }>[];
}>;

export type TaskContainer = Readonly<{
  image: string;
  command?: readonly string[];
  args?: readonly string[];
  env?: readonly string[];
  dir?: string;
  user?: string;
  labels?: Labels;
  stopGracePeriodNs?: number;
  mounts?: readonly TaskMount[];
  secrets?: readonly SecretReference[];
  configs?: readonly SecretReference[];
  hostname?: string;
  groups?: readonly string[];
  stopSignal?: string;
  tty?: boolean;
  openStdin?: boolean;
  readOnly?: boolean;
  /** Missing: as the node's daemon is set. */
  init?: boolean;
  sysctls?: Labels;
  /** As in /etc/hosts: an address, then names. */
  hosts?: readonly string[];
  dns?: Readonly<{ nameservers?: readonly string[]; search?: readonly string[]; options?: readonly string[] }>;
  healthcheck?: TaskHealthcheck;
  capAdd?: readonly string[];
  capDrop?: readonly string[];
  ulimits?: readonly Readonly<{ name: string; soft: number; hard: number }>[];
  privileges?: Privileges;
  oomScoreAdj?: number;
  /** Kinds of Windows, with which the container is refused. */
  isolation?: 'process' | 'hyperv';
  /** A network of the task's node, in place of those of the cluster. */
  nodeNetwork?: NodeNetwork;
}>;

/** Networks that every node has under the same name. */
export const NODE_NETWORKS = ['host', 'bridge'] as const;
export type NodeNetwork = (typeof NODE_NETWORKS)[number];

/** Missing fields are the image's. */
export type TaskHealthcheck = Readonly<{
  test?: readonly string[];
  intervalNs?: number;
  timeoutNs?: number;
  startPeriodNs?: number;
  startIntervalNs?: number;
  retries?: number;
}>;

export type Privileges = Readonly<{
  seLinux?: Readonly<{ disable?: boolean; user?: string; role?: string; type?: string; level?: string }>;
  /** The profile (JSON) is of mode `custom` alone. */
  seccomp?: Readonly<{ mode: 'default' | 'unconfined' | 'custom'; profile?: string }>;
  appArmor?: 'default' | 'disabled';
  noNewPrivileges?: boolean;
}>;

/** A secret or config that a task gets as a file. The ids are numbers as text, the mode has permission bits. */
export type SecretReference = Readonly<{
  id: string;
  name: string;
  file: Readonly<{ name: string; uid: string; gid: string; mode: number }>;
}>;

export type TaskMount = Readonly<{
  type: 'bind' | 'volume' | 'tmpfs' | 'image';
  source?: string;
  target?: string;
  readOnly?: boolean;
  propagation?: string;
  nonRecursive?: boolean;
  createMountpoint?: boolean;
  readOnlyNonRecursive?: boolean;
  readOnlyForceRecursive?: boolean;
  volume?: Readonly<{
    noCopy?: boolean;
    subpath?: string;
    labels?: Labels;
    driver?: Readonly<{ name?: string; options?: Labels }>;
  }>;
  /** Each option is a name, or a name and a value. */
  tmpfs?: Readonly<{ sizeBytes?: number; mode?: number; options?: readonly (readonly string[])[] }>;
  image?: Readonly<{ subpath?: string }>;
}>;
