import type { Readable } from 'node:stream';

import type { Connection, Query } from './connection.ts';

type Texts = Record<string, string>;
type Dated = { ID: string; Version: { Index: number }; CreatedAt: string; UpdatedAt: string };

export type SwarmSpec = {
  Name: string;
  Orchestration: { TaskHistoryRetentionLimit: number };
  Raft: Record<string, number>;
  Dispatcher: { HeartbeatPeriod: number };
  CAConfig: { NodeCertExpiry: number; ForceRotate?: number };
  EncryptionConfig?: { AutoLockManagers: boolean };
  [more: string]: unknown;
};
export type SwarmWire = Dated & {
  Spec: SwarmSpec;
  JoinTokens: { Worker: string; Manager: string };
  TLSInfo: { TrustRoot: string };
  RootRotationInProgress: boolean;
};

export type NodeSpec = { Name?: string; Role: string; Availability: string; Labels: Texts };
export type NodeWire = Dated & {
  Spec: NodeSpec;
  Description: { Hostname?: string; Engine: { EngineVersion?: string } };
  Status: { State: string; Addr?: string; Message?: string };
  ManagerStatus?: { Leader?: boolean; Reachability: string; Addr: string };
};

export type PortWire = { Protocol?: string; TargetPort: number; PublishedPort?: number; PublishMode?: string };
export type MountWire = {
  Type: string;
  Source?: string;
  Target: string;
  ReadOnly?: boolean;
  BindOptions?: { Propagation: string };
  VolumeOptions?: { NoCopy?: boolean; Labels?: Texts; DriverConfig?: { Name?: string; Options?: Texts } };
};
type Amounts = { NanoCPUs?: number; MemoryBytes?: number };
export type FileTarget = { Name: string; UID: string; GID: string; Mode: number };
export type SecretReference = { File: FileTarget; SecretID: string; SecretName: string };
export type ConfigReference = { File: FileTarget; ConfigID: string; ConfigName: string };
export type ContainerSpec = {
  Image: string;
  Labels?: Texts;
  Command?: string[];
  Args?: string[];
  Env?: string[];
  Dir?: string;
  User?: string;
  StopGracePeriod?: number;
  Mounts?: MountWire[];
  Secrets?: SecretReference[];
  Configs?: ConfigReference[];
};
export type TaskTemplate = {
  ContainerSpec: ContainerSpec;
  Resources?: { Limits?: Amounts; Reservations?: Amounts };
  RestartPolicy?: { Condition?: string; Delay?: number; MaxAttempts?: number; Window?: number };
  Placement?: { Constraints?: string[] };
  LogDriver?: { Name: string; Options?: Texts };
  ForceUpdate?: number;
};
export type UpdateConfig = {
  Parallelism?: number;
  Delay?: number;
  FailureAction?: string;
  Monitor?: number;
  MaxFailureRatio?: number;
  Order?: string;
};
/** A missing index is the first: 0. */
type Iteration = { Index?: number };
export type ServiceSpec = {
  Name: string;
  Labels?: Texts;
  TaskTemplate: TaskTemplate;
  Mode?: {
    Replicated?: { Replicas?: number };
    Global?: object;
    ReplicatedJob?: { MaxConcurrent?: number; TotalCompletions?: number };
    GlobalJob?: object;
  };
  UpdateConfig?: UpdateConfig;
  RollbackConfig?: UpdateConfig;
  Networks?: { Target: string }[];
  EndpointSpec?: { Mode?: string; Ports?: PortWire[] };
};
export type ServiceWire = Dated & {
  JobStatus?: { JobIteration: Iteration };
  Spec: ServiceSpec;
  PreviousSpec?: ServiceSpec;
  Endpoint: { Ports?: PortWire[] };
  UpdateStatus?: { State: string; Message: string };
};

export type TaskWire = Dated & {
  JobIteration?: Iteration;
  Spec: TaskTemplate;
  ServiceID: string;
  Slot?: number;
  NodeID?: string;
  Status: { Timestamp: string; State: string; Message: string; Err?: string };
  DesiredState: string;
};

/** GET /swarm. */
export async function inspectSwarm(engine: Connection): Promise<SwarmWire> {
  return await engine.call('GET', '/swarm');
}

/** POST /swarm/init. Returns the id of the node. */
export async function initSwarm(engine: Connection, body: object): Promise<string> {
  return await engine.call('POST', '/swarm/init', { body });
}

/** POST /swarm/join. */
export async function joinSwarm(engine: Connection, body: object): Promise<void> {
  await engine.call('POST', '/swarm/join', { body });
}

/** POST /swarm/leave. */
export async function leaveSwarm(engine: Connection, force: boolean): Promise<void> {
  await engine.call('POST', '/swarm/leave', { query: { force } });
}

/** POST /swarm/update; `query` may rotate tokens. */
export async function updateSwarm(
  engine: Connection,
  { Version, Spec }: Pick<SwarmWire, 'Version' | 'Spec'>,
  query: Query = {},
): Promise<void> {
  await engine.call('POST', '/swarm/update', { query: { version: Version.Index, ...query }, body: Spec });
}

/** First version of the API that has unlock keys. */
const UNLOCK_SINCE = '1.25';

/** GET /swarm/unlockkey. Empty: managers are not locked. */
export async function unlockKey(engine: Connection): Promise<string> {
  return (await engine.call<{ UnlockKey: string }>('GET', '/swarm/unlockkey', { version: UNLOCK_SINCE })).UnlockKey;
}

/** POST /swarm/unlock. */
export async function unlockSwarm(engine: Connection, key: string): Promise<void> {
  await engine.call('POST', '/swarm/unlock', { body: { UnlockKey: key }, version: UNLOCK_SINCE });
}

/** GET /nodes. */
export async function listNodes(engine: Connection, query: Query = {}): Promise<NodeWire[]> {
  return await engine.call('GET', '/nodes', { query });
}

/** GET /nodes/{ref}. */
export async function inspectNode(engine: Connection, ref: string): Promise<NodeWire> {
  return await engine.call('GET', `/nodes/${encodeURIComponent(ref)}`);
}

/** POST /nodes/{id}/update. */
export async function updateNode(engine: Connection, { ID, Version }: NodeWire, spec: NodeSpec): Promise<void> {
  await engine.call('POST', `/nodes/${ID}/update`, { query: { version: Version.Index }, body: spec });
}

/** DELETE /nodes/{ref}. */
export async function removeNode(engine: Connection, ref: string, force: boolean): Promise<void> {
  await engine.call('DELETE', `/nodes/${encodeURIComponent(ref)}`, { query: { force } });
}

/** GET /services. */
export async function listServices(engine: Connection, query: Query = {}): Promise<ServiceWire[]> {
  return await engine.call('GET', '/services', { query });
}

/** POST /services/create. */
export async function createService(
  engine: Connection,
  body: ServiceSpec,
  headers: Record<string, string> = {},
): Promise<{ ID: string }> {
  return await engine.call('POST', '/services/create', { body, headers });
}

/** GET /services/{ref}. */
export async function inspectService(engine: Connection, ref: string): Promise<ServiceWire> {
  return await engine.call('GET', `/services/${encodeURIComponent(ref)}`);
}

/** POST /services/{id}/update. */
export async function updateService(
  engine: Connection,
  { ID, Version }: ServiceWire,
  body: ServiceSpec,
  options: { headers?: Record<string, string>; query?: Query } = {},
): Promise<void> {
  const { headers = {}, query = {} } = options;
  await engine.call('POST', `/services/${ID}/update`, { query: { version: Version.Index, ...query }, body, headers });
}

/** DELETE /services/{ref}. */
export async function removeService(engine: Connection, ref: string): Promise<void> {
  await engine.call('DELETE', `/services/${encodeURIComponent(ref)}`);
}

/** GET /tasks. */
export async function listTasks(engine: Connection, query: Query = {}): Promise<TaskWire[]> {
  return await engine.call('GET', '/tasks', { query });
}

/** GET /tasks/{ref}. */
export async function inspectTask(engine: Connection, ref: string): Promise<TaskWire> {
  return await engine.call('GET', `/tasks/${encodeURIComponent(ref)}`);
}

/** GET /services/{id}/logs and /tasks/{id}/logs. */
export async function taskLogs(
  engine: Connection,
  path: `/${'services' | 'tasks'}/${string}`,
  query: Query,
): Promise<Readable> {
  return await engine.stream('GET', `${path}/logs`, { query, version: '1.29' });
}
