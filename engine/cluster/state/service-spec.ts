import type { Labels, TaskTemplate } from './task-template.ts';

export type EndpointPort = Readonly<{
  name?: string;
  protocol: 'tcp' | 'udp';
  targetPort: number;
  /** 0 in a specification: one is chosen. */
  publishedPort: number;
  /** On the node of each task alone, by its container; else on all nodes. */
  mode?: 'host';
}>;
/** A port that a task has published on its node. */
export type TaskPort = Readonly<Pick<EndpointPort, 'protocol' | 'targetPort' | 'publishedPort'>>;
export type EndpointSpec = Readonly<{ mode: 'vip' | 'dnsrr'; ports: readonly EndpointPort[] }>;

/** How tasks of an older template are replaced. */
export type UpdateConfig = Readonly<{
  /** At a time; 0: all. */
  parallelism: number;
  delayNs: number;
  failureAction: 'pause' | 'continue' | 'rollback';
  /** A task that ends within this time of its start counts as failed. */
  monitorNs?: number;
  /** The share of the tasks that may fail without the failure action; 0: none. */
  maxFailureRatio?: number;
  /** Without a word: stop-first. */
  order?: 'stop-first' | 'start-first';
}>;

/** Tasks of a job run to their end once, on each node or as many times as `totalCompletions`. */
export type ServiceMode = Readonly<
  | { kind: 'replicated'; replicas: number }
  | { kind: 'global' }
  | { kind: 'replicated-job'; maxConcurrent: number; totalCompletions: number }
  | { kind: 'global-job' }
>;

export type ServiceSpec = Readonly<{
  name: string;
  labels: Labels;
  template: TaskTemplate;
  mode: ServiceMode;
  update?: UpdateConfig;
  /** For updates that are taken back. */
  rollback?: UpdateConfig;
  /** The client has written its networks into the task template, where answers show them too. */
  hasTaskNetworks?: true;
  /** Ids. */
  networks: readonly Readonly<{ target: string; aliases: readonly string[]; driverOpts?: Labels }>[];
  endpoint?: EndpointSpec;
}>;
