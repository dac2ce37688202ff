import type { GenericResource } from '../../lib/notations/generic-resources.ts';
import type { EndpointPort, EndpointSpec, ServiceSpec, TaskPort } from './service-spec.ts';
import type { Labels, LogDriver, Resources, TaskTemplate } from './task-template.ts';

/**
 * The records of the cluster, as they are stored: JSON below `<kind>/<id>`. Times are RFC 3339 in UTC, sizes bytes,
 * durations nanoseconds. `version` is the revision of the record's last change (`Version.Index` of the API); it is the
 * store's, never part of the JSON, and 0 of what is in a draft only.
 */
export type Records = {
  cluster: ClusterRecord;
  node: NodeRecord;
  service: ServiceRecord;
  template: TemplateRecord;
  task: TaskRecord;
  network: NetworkRecord;
  restart: RestartRecord;
  attachment: AttachmentRecord;
  secret: SecretRecord;
  config: SecretRecord;
};
export type Kind = keyof Records;
export type Stored<K extends Kind> = Records[K] & Readonly<{ version: number }>;

type Dated = { createdAt: string; updatedAt: string };

/** The only one; its key is `cluster`, its id in the store the empty text. */
export type ClusterRecord = Readonly<
  Dated & {
    /** The cluster's own id. */
    id: string;
    spec: ClusterSpec;
    /** PEM: certificate and key of the authority that issues the certificates of nodes. The key is empty where only others have it. */
    ca: Authority;
    /** The root that follows, while nodes get its certificates, and its certificate by the present root (PEM). */
    rotation?: Readonly<{ root: Authority; crossSigned: string }>;
    /** `forceRotate` of the last rotation that a client has forced. */
    forcedRotation?: number;
    /** PEM: the root before the last rotation. */
    formerRoot?: string;
    /** PEM: the same for the peers of etcd, where no certificate of a node opens anything. */
    peerCa: Authority;
    /** Serial numbers (hexadecimal) of revoked certificates of peers, with the second in which they expire. */
    revokedPeers: readonly Readonly<{ serial: string; expires: number; revoked: number }>[];
    joinSecrets: Readonly<{ worker: string; manager: string }>;
    /** Ranges from which networks without a range of their own are taken, and the length of their prefixes. */
    addressPools?: readonly string[];
    subnetSize?: number;
    /** The port of the tunnels between nodes; missing: VXLAN's. */
    tunnelPort?: number;
    /** A client has removed the network `ingress`. */
    ingressRemoved?: true;
    /** Digest of the key of secrets and configs, which is a file of each manager. */
    dataKey?: string;
    /** The key that unlocks managers, where they are locked. */
    unlockKey?: string;
    /** Keys and secrets of this record, encrypted: as etcd stores it, and where a manager lacks the data key. */
    sealed?: string;
  }
>;

export type Authority = Readonly<{ certificate: string; key: string }>;

export type ClusterSpec = Readonly<{
  /** The only name, as with dockerd. */
  name: 'default';
  labels: Labels;
  taskHistoryRetentionLimit: number;
  raft: Readonly<{
    snapshotInterval: number;
    keepOldSnapshots: number;
    logEntriesForSlowFollowers: number;
    heartbeatTick: number;
    electionTick: number;
  }>;
  heartbeatPeriodNs: number;
  nodeCertExpiryNs: number;
  externalCas: readonly Readonly<{ protocol: 'cfssl'; url: string; options: Labels; certificate?: string }>[];
  /** Another number begins a rotation of the root. */
  forceRotate?: number;
  /** Managers need a key to go on after a restart. */
  autoLock?: boolean;
  /** For tasks that name none. */
  logDriver?: LogDriver;
}>;

export type NodeRole = 'worker' | 'manager';
export type Availability = 'active' | 'pause' | 'drain';
export type NodeState = 'unknown' | 'down' | 'ready' | 'disconnected';

export type NodeRecord = Readonly<
  Dated & {
    id: string;
    spec: Readonly<{ name: string; labels: Labels; role: NodeRole; availability: Availability }>;
    /** Role in its certificate: follows `spec.role`. */
    role: NodeRole;
    /** Digests of the root that it trusts, and of the key that has signed its certificate (`ca/rotation.ts`). */
    tls?: Readonly<{ root: string; issuer: string }>;
    /** Missing until its first session. */
    description?: NodeDescription;
    status: Readonly<{ state: NodeState; message: string; address: string }>;
    /** Its address for the traffic of overlays; missing: that of `status`. */
    dataPath?: string;
    /** As `10.255.0.2/16`: where published ports of services lead on this node. */
    ingress?: string;
    /** For a manager whose etcd is a member: its address, and the member's id (hexadecimal). */
    manager?: ManagerPlace;
  }
>;

export type ManagerPlace = Readonly<{
  address: string;
  member: string;
  peerSerial: string;
  /** Its etcd does not vote yet: it has no records, and can answer nobody. */
  isLearning?: true;
}>;

export type NodeDescription = Readonly<{
  hostname: string;
  platform: Readonly<{ architecture: string; os: string }>;
  resources: Resources & Readonly<{ generic?: readonly GenericResource[] }>;
  engine: Readonly<{
    version: string;
    labels: Labels;
    plugins: readonly Readonly<{ type: string; name: string }>[];
  }>;
  /** Parts of tasks that earlier versions of the daemon do not know. */
  features?: readonly string[];
}>;

export type ServiceRecord = Readonly<
  Dated & {
    id: string;
    spec: ServiceSpec;
    previousSpec?: ServiceSpec;
    /** The template of the tasks that it wants: the end of the key of a template. */
    template: string;
    /** Present for jobs: each update runs the job again, as its next iteration. */
    job?: Readonly<{ iteration: number; startedAt: string }>;
    endpoint: Readonly<{
      ports: readonly EndpointPort[];
      virtualIps: readonly Readonly<{ network: string; address: string }>[];
    }>;
    updateStatus?: Readonly<{
      state: 'updating' | 'paused' | 'completed' | `rollback_${'started' | 'paused' | 'completed'}`;
      startedAt: string;
      /** Tasks made before are not of it: of a rollback that followed an update by itself. */
      since?: string;
      completedAt?: string;
      message: string;
    }>;
    /** The header X-Registry-Auth of its last create or update, for its nodes only. */
    registryAuth?: string;
  }
>;

/** Fields that make a task dirty when they differ; the id is `<service>/<hash>`. */
export type TemplateRecord = Readonly<{
  service: string;
  hash: string;
  template: TaskTemplate;
  networks: ServiceSpec['networks'];
  endpoint?: EndpointSpec;
}>;

/** In their order: a task never goes back. */
export const TASK_STATES = [
  'new',
  'pending',
  'assigned',
  'accepted',
  'preparing',
  'ready',
  'starting',
  'running',
  'complete',
  'shutdown',
  'failed',
  'rejected',
  'orphaned',
] as const;
export type TaskState = (typeof TASK_STATES)[number];
/** `complete`: a task of a job, which is to run to its end. */
export type DesiredState = 'ready' | 'running' | 'complete' | 'shutdown' | 'remove';

export type TaskRecord = Readonly<
  Dated & {
    id: string;
    service: string;
    /** From 1; 0 of a global service's task, which has a node instead. */
    slot: number;
    /** Empty while it has none. */
    node: string;
    template: string;
    /** Iteration of the job; missing for tasks of other services. */
    jobIteration?: number;
    desired: DesiredState;
    status: Readonly<{
      state: TaskState;
      timestamp: string;
      message: string;
      error?: string;
      /** When it came to run; kept at its end. */
      startedAt?: string;
      container?: Readonly<{ id: string; pid: number; exitCode: number }>;
      /** Those in host mode, while it runs. */
      ports?: readonly TaskPort[];
    }>;
    /** Resources of its node that it was given. */
    generic?: readonly GenericResource[];
    /** CIDR texts by network. */
    addresses: readonly Readonly<{ network: string; address: string }>[];
  }
>;

export type NetworkRecord = Readonly<
  Dated & {
    id: string;
    name: string;
    labels: Labels;
    internal: boolean;
    ingress: boolean;
    encrypted: boolean;
    options: Labels;
    vni: number;
    subnets: readonly Readonly<{
      subnet: string;
      gateway: string;
      range?: string;
      /** Addresses that nobody gets, by their names. */
      auxiliary?: Labels;
    }>[];
    /** Containers that belong to no service may join. */
    attachable?: boolean;
  }
>;

/** Where MaxAttempts is set; the id is `<service>/<slot or node>`. */
type RestartRecord = Readonly<{
  service: string;
  /** The slot, or the node of a global service's task. */
  place: string;
  template: string;
  /** Iteration of the job. */
  iteration?: number;
  /** When it was started again. */
  attempts: readonly string[];
}>;

/** A secret or a config. */
export type SecretRecord = Readonly<
  Dated & {
    id: string;
    name: string;
    labels: Labels;
    /** Its data is a template, which each task's node expands. */
    templating?: Readonly<{ name: string; options: Labels }>;
    /** Encrypted data (`secrets/seal.ts`). */
    sealed: string;
  }
>;

/** A container of no service in an attachable network: it is the node's, which says so in each session. */
type AttachmentRecord = Readonly<
  Dated & {
    id: string;
    node: string;
    network: string;
    /** Name of the container. */
    name: string;
    aliases: readonly string[];
    /** The address that it wants, without a prefix length. */
    ip?: string;
    /** As `10.0.1.5/24`; empty until it has one. */
    address: string;
    /** Why it has none. */
    error?: string;
  }
>;
