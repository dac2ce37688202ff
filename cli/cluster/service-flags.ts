import type { PortWire, ServiceSpec, TaskTemplate } from '@gantry/client/cluster.ts';

import type { Given } from '../command-line/command.ts';
import { mapOf } from '../command-line/values.ts';
import { portsOf } from '../create/network-values.ts';
import { UsageError } from '../exit-codes.ts';

const CONDITIONS = ['none', 'on-failure', 'any'];
const ACTIONS = ['pause', 'continue', 'rollback'];
const ORDERS = ['stop-first', 'start-first'];

/** The flags that creations and updates have in common. */
export const SETTINGS = {
  'endpoint-mode': { kind: 'text', help: 'vip or dnsrr', offers: ['vip', 'dnsrr'] },
  entrypoint: { kind: 'text', value: 'COMMAND', help: 'The program instead of the image’s' },
  'limit-cpu': { kind: 'decimal', help: 'CPUs that a task may use' },
  'limit-memory': { kind: 'bytes', help: 'Memory that a task may use' },
  'log-driver': { kind: 'text', help: 'The driver of its logs' },
  'log-opt': { kind: 'list', value: 'NAME=VALUE', help: 'An option of that driver' },
  'max-concurrent': { kind: 'integer', help: 'Tasks of a job at a time' },
  replicas: { kind: 'integer', help: 'How many tasks, or completions of a job' },
  'reserve-cpu': { kind: 'decimal', help: 'CPUs that a node must have left' },
  'reserve-memory': { kind: 'bytes', help: 'Memory that a node must have left' },
  'restart-condition': { kind: 'text', help: 'none, on-failure or any', offers: CONDITIONS },
  'restart-delay': { kind: 'duration', help: 'The delay before the next task' },
  'restart-max-attempts': { kind: 'integer', help: 'The most restarts; 0: no limit' },
  'restart-window': { kind: 'duration', help: 'The time in which they count' },
  'rollback-delay': { kind: 'duration', help: 'The delay between tasks of a rollback' },
  'rollback-failure-action': { kind: 'text', help: 'pause or continue', offers: ['pause', 'continue'] },
  'rollback-max-failure-ratio': { kind: 'decimal', help: 'The share of tasks that may fail' },
  'rollback-monitor': { kind: 'duration', help: 'A task that ends so soon after its start has failed' },
  'rollback-order': { kind: 'text', help: 'stop-first or start-first', offers: ORDERS },
  'rollback-parallelism': { kind: 'integer', help: 'Tasks taken back at once; 0: all' },
  'stop-grace-period': { kind: 'duration', help: 'The time between the stop signal and SIGKILL' },
  'update-delay': { kind: 'duration', help: 'The delay between tasks of an update' },
  'update-failure-action': { kind: 'text', help: 'pause, continue or rollback', offers: ACTIONS },
  'update-max-failure-ratio': { kind: 'decimal', help: 'The share of tasks that may fail' },
  'update-monitor': { kind: 'duration', help: 'A task that ends so soon after its start has failed' },
  'update-order': { kind: 'text', help: 'stop-first or start-first', offers: ORDERS },
  'update-parallelism': { kind: 'integer', help: 'Tasks updated at once; 0: all' },
  user: { kind: 'text', short: 'u', help: 'The user, and group, of its processes' },
  'with-registry-auth': { kind: 'boolean', help: 'Nodes pull with the login of this command line' },
  workdir: { kind: 'text', short: 'w', help: 'The working directory' },
} as const;

/** A specification with what the flags say of it. */
export function applySettings(spec: ServiceSpec, flags: Given<typeof SETTINGS>): ServiceSpec {
  const container = spec.TaskTemplate.ContainerSpec;
  const mode = modeWith(spec.Mode, flags.replicas, flags['max-concurrent']);
  const endpoint = flags['endpoint-mode'];
  return {
    ...spec,
    ...omitUndefined({
      Mode: mode,
      UpdateConfig: withGiven(spec.UpdateConfig, {
        Parallelism: flags['update-parallelism'],
        Delay: flags['update-delay'],
        FailureAction: flags['update-failure-action'],
        Monitor: flags['update-monitor'],
        MaxFailureRatio: flags['update-max-failure-ratio'],
        Order: flags['update-order'],
      }),
      RollbackConfig: withGiven(spec.RollbackConfig, {
        Parallelism: flags['rollback-parallelism'],
        Delay: flags['rollback-delay'],
        FailureAction: flags['rollback-failure-action'],
        Monitor: flags['rollback-monitor'],
        MaxFailureRatio: flags['rollback-max-failure-ratio'],
        Order: flags['rollback-order'],
      }),
      EndpointSpec: endpoint === undefined ? spec.EndpointSpec : { ...spec.EndpointSpec, Mode: endpoint },
    }),
    TaskTemplate: {
      ...spec.TaskTemplate,
      ContainerSpec: {
        ...container,
        ...omitUndefined({
          Command: flags.entrypoint?.split(/\s+/).filter((word) => word !== ''),
          User: flags.user,
          Dir: flags.workdir,
          StopGracePeriod: flags['stop-grace-period'],
        }),
      },
      ...omitUndefined({
        RestartPolicy: withGiven(spec.TaskTemplate.RestartPolicy, {
          Condition: flags['restart-condition'],
          Delay: flags['restart-delay'],
          MaxAttempts: flags['restart-max-attempts'],
          Window: flags['restart-window'],
        }),
        LogDriver: logDriver(spec.TaskTemplate, flags),
        Resources: resources(spec.TaskTemplate, flags),
      }),
    },
  };
}

function modeWith(
  mode: ServiceSpec['Mode'],
  replicas: number | undefined,
  concurrent: number | undefined,
): ServiceSpec['Mode'] {
  if (mode?.ReplicatedJob !== undefined) {
    const given = {
      TotalCompletions: replicas,
      MaxConcurrent: concurrent ?? mode.ReplicatedJob.MaxConcurrent ?? replicas,
    };
    return { ReplicatedJob: { ...mode.ReplicatedJob, ...omitUndefined(given) } };
  }
  if (concurrent !== undefined) throw new UsageError('max-concurrent can only be used with replicated-job mode');
  if (replicas === undefined) return mode;
  if (mode?.Global !== undefined || mode?.GlobalJob !== undefined)
    throw new UsageError('replicas can only be used with replicated mode');
  return { Replicated: { Replicas: replicas } };
}

function resources({ Resources }: TaskTemplate, flags: Given<typeof SETTINGS>): TaskTemplate['Resources'] {
  return withGiven(Resources, {
    Limits: withGiven(Resources?.Limits, amounts(flags['limit-cpu'], flags['limit-memory'])),
    Reservations: withGiven(Resources?.Reservations, amounts(flags['reserve-cpu'], flags['reserve-memory'])),
  });
}

function amounts(cpu: number | undefined, memory: number | undefined): object {
  return { NanoCPUs: cpu === undefined ? undefined : Math.round(cpu * 1e9), MemoryBytes: memory };
}

function logDriver({ LogDriver }: TaskTemplate, flags: Given<typeof SETTINGS>): TaskTemplate['LogDriver'] {
  const name = flags['log-driver'];
  const options = flags['log-opt'];
  if (name === undefined && options.length === 0) return LogDriver;
  return { Name: name ?? LogDriver?.Name ?? '', Options: { ...LogDriver?.Options, ...mapOf(options) } };
}

/** `[PUBLISHED:]TARGET[/PROTOCOL]`, or `published=…,target=…,protocol=…,mode=host`. */
export function publishedPorts(list: readonly string[]): PortWire[] {
  return list
    .map(inWords)
    .flatMap(({ text, isOfHost }) => portsOf(text).map((port) => ({ ...port, isOfHost })))
    .map(({ container, hostPort, hostIp, isOfHost }) => {
      if (hostIp !== '') throw new UsageError(`a service publishes its ports on all addresses, not on ${hostIp}`);
      const [port = '', Protocol = 'tcp'] = container.split('/');
      return {
        ...{ Protocol, TargetPort: Number(port) },
        ...(hostPort === '' ? {} : { PublishedPort: Number(hostPort) }),
        ...(isOfHost ? { PublishMode: 'host' } : {}),
      };
    });
}

/** The long form says where a port is published: on all nodes, or with `mode=host` on those of the tasks. */
function inWords(text: string): { text: string; isOfHost: boolean } {
  const words = text.split(',');
  const isOfHost = words.includes('mode=host');
  return { text: words.filter((word) => word !== 'mode=ingress' && word !== 'mode=host').join(','), isOfHost };
}

/** The fields that are given over what was there; undefined where there is nothing at all. */
function withGiven<T extends object>(before: T | undefined, fields: object): T | undefined {
  const changes = omitUndefined(fields);
  return before === undefined && Object.keys(changes).length === 0 ? undefined : ({ ...before, ...changes } as T);
}

function omitUndefined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
