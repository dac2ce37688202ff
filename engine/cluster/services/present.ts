import { presentReferences } from '../secrets/references.ts';
import type {
  EndpointPort,
  EndpointSpec,
  Resources,
  ServiceSpec,
  Stored,
  TaskMount,
  TaskTemplate,
  UpdateConfig,
} from '../state/records.ts';
import { omitEmpty } from './omit-empty.ts';

/** The specification's "Service", without the fields that a client left out. */
export function presentService(service: Stored<'service'>): object {
  const { id, version, createdAt, updatedAt, spec, previousSpec, endpoint, updateStatus } = service;
  return {
    ID: id,
    Version: { Index: version },
    CreatedAt: createdAt,
    UpdatedAt: updatedAt,
    Spec: presentSpec(spec),
    ...omitEmpty({ PreviousSpec: previousSpec && presentSpec(previousSpec) }),
    Endpoint: {
      Spec: presentEndpoint(spec.endpoint) ?? {},
      ...filled({
        Ports: endpoint.ports.map(presentPort),
        VirtualIPs: endpoint.virtualIps.map(({ network, address }) => ({ NetworkID: network, Addr: address })),
      }),
    },
    ...omitEmpty({
      UpdateStatus: updateStatus && {
        State: updateStatus.state,
        StartedAt: updateStatus.startedAt,
        ...omitEmpty({ CompletedAt: updateStatus.completedAt }),
        Message: updateStatus.message,
      },
    }),
  };
}

function presentSpec({ name, labels, template, mode, update, rollback, networks, endpoint }: ServiceSpec): object {
  return {
    Name: name,
    Labels: labels,
    TaskTemplate: presentTaskTemplate(template),
    Mode: mode.kind === 'global' ? { Global: {} } : { Replicated: { Replicas: mode.replicas } },
    ...omitEmpty({
      UpdateConfig: update && presentUpdate(update),
      RollbackConfig: rollback && presentUpdate(rollback),
    }),
    ...filled({
      Networks: networks.map(({ target, aliases }) => ({ Target: target, ...filled({ Aliases: aliases }) })),
    }),
    ...omitEmpty({ EndpointSpec: presentEndpoint(endpoint) }),
  };
}

/** As dockerd has it, with the fields of later versions. */
function presentUpdate(config: UpdateConfig): object {
  return {
    Parallelism: config.parallelism,
    ...filled({ Delay: config.delayNs }),
    FailureAction: config.failureAction,
    ...filled({ Monitor: config.monitorNs }),
    MaxFailureRatio: config.maxFailureRatio ?? 0,
    Order: config.order ?? 'stop-first',
  };
}

/** The specification's "TaskTemplate", of a service and of a task. */
export function presentTaskTemplate(template: TaskTemplate): object {
  const { container, resources, restart, constraints, logDriver, forceUpdate } = template;
  const { image, command, args, env, dir, user, labels, mounts, stopGracePeriodNs } = container;
  return {
    ContainerSpec: {
      Image: image,
      ...filled({ Labels: labels, Command: command, Args: args, Env: env, Dir: dir, User: user }),
      ...filled({ Mounts: mounts?.map(presentMount) }),
      ...omitEmpty({ StopGracePeriod: stopGracePeriodNs }),
      ...presentReferences(container),
    },
    ...omitEmpty({
      Resources: resources && {
        ...omitEmpty({
          Limits: presentAmounts(resources.limits),
          Reservations: presentAmounts(resources.reservations),
        }),
      },
      RestartPolicy: restart && {
        Condition: restart.condition,
        ...omitEmpty({ Delay: restart.delayNs }),
        MaxAttempts: restart.maxAttempts,
        ...omitEmpty({ Window: restart.windowNs }),
      },
      Placement: constraints && { ...filled({ Constraints: constraints }) },
      LogDriver: logDriver && { Name: logDriver.name, ...filled({ Options: logDriver.options }) },
      ForceUpdate: forceUpdate,
    }),
  };
}

function presentAmounts(amounts: Partial<Resources> | undefined): object | undefined {
  return amounts && omitEmpty({ NanoCPUs: amounts.nanoCpus, MemoryBytes: amounts.memoryBytes });
}

function presentMount({ type, source, target, readOnly, propagation, volume }: TaskMount): object {
  return {
    Type: type,
    ...omitEmpty({
      Source: source,
      Target: target,
      ReadOnly: readOnly,
      BindOptions: propagation === undefined ? undefined : { Propagation: propagation },
      VolumeOptions: volume && {
        ...omitEmpty({ NoCopy: volume.noCopy }),
        ...filled({ Labels: volume.labels }),
        ...omitEmpty({
          DriverConfig: volume.driver && {
            ...omitEmpty({ Name: volume.driver.name }),
            ...filled({ Options: volume.driver.options }),
          },
        }),
      },
    }),
  };
}

function presentEndpoint(endpoint: EndpointSpec | undefined): object | undefined {
  return endpoint && { Mode: endpoint.mode, ...filled({ Ports: endpoint.ports.map(presentPort) }) };
}

export function presentPort({ name, protocol, targetPort, publishedPort, mode }: EndpointPort): object {
  return {
    ...omitEmpty({ Name: name }),
    Protocol: protocol,
    TargetPort: targetPort,
    ...(publishedPort === 0 ? {} : { PublishedPort: publishedPort }),
    PublishMode: mode ?? 'ingress', // docker's command line lists no other ports
  };
}

/** Without what is empty: Go's `omitempty`. */
function filled<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value))) as Partial<T>;
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === 0) return true;
  return typeof value !== 'number' && Object.keys(value).length === 0;
}
