import type { Stored } from '../state/records.ts';
import type { EndpointPort, EndpointSpec, ServiceMode, ServiceSpec, UpdateConfig } from '../state/service-spec.ts';
import { filled, omitEmpty } from './omit-empty.ts';
import { presentTaskTemplate } from './task-template/present.ts';

/** The specification's "Service", without the fields that a client left out. */
export function presentService(service: Stored<'service'>): object {
  const { id, version, createdAt, updatedAt, spec, previousSpec, endpoint, updateStatus, job } = service;
  return {
    ID: id,
    Version: { Index: version },
    CreatedAt: createdAt,
    UpdatedAt: updatedAt,
    Spec: presentSpec(spec),
    ...omitEmpty({ PreviousSpec: previousSpec && presentSpec(previousSpec) }),
    Endpoint: {
      // As dockerd, which fills it in for services with ports or networks alone.
      Spec: (hasEndpoint(spec) ? presentEndpoint(spec.endpoint) : undefined) ?? {},
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
      JobStatus: job && { JobIteration: presentIteration(job.iteration), LastExecution: job.startedAt },
    }),
  };
}

function hasEndpoint({ endpoint, networks }: ServiceSpec): boolean {
  return networks.length > 0 || (endpoint?.ports.length ?? 0) > 0;
}

function presentSpec(spec: ServiceSpec): object {
  const { name, labels, template, mode, update, rollback, hasTaskNetworks, networks, endpoint } = spec;
  const shown = presentNetworks(networks, template);
  return {
    Name: name,
    Labels: labels,
    TaskTemplate: {
      ...presentTaskTemplate(template),
      ...(hasTaskNetworks === true ? filled({ Networks: shown }) : {}),
      Runtime: 'container',
    },
    Mode: presentMode(mode),
    ...omitEmpty({
      UpdateConfig: update && presentUpdate(update),
      RollbackConfig: rollback && presentUpdate(rollback),
    }),
    ...(hasTaskNetworks === true ? {} : filled({ Networks: shown })),
    ...omitEmpty({ EndpointSpec: presentEndpoint(endpoint) }),
  };
}

/** The networks of a service, as its specification or its task template has them. */
export function presentNetworks(
  networks: ServiceSpec['networks'],
  template: Pick<ServiceSpec['template'], 'container'> | undefined,
): object[] {
  const { nodeNetwork } = template?.container ?? {};
  if (nodeNetwork !== undefined) return [{ Target: nodeNetwork }];
  return networks.map(({ target, aliases, driverOpts }) => ({
    Target: target,
    ...filled({ Aliases: aliases, DriverOpts: driverOpts }),
  }));
}

function presentMode(mode: ServiceMode): object {
  switch (mode.kind) {
    case 'replicated':
      return { Replicated: { Replicas: mode.replicas } };
    case 'global':
      return { Global: {} };
    case 'replicated-job':
      return { ReplicatedJob: { MaxConcurrent: mode.maxConcurrent, TotalCompletions: mode.totalCompletions } };
    case 'global-job':
      return { GlobalJob: {} };
  }
}

export function presentIteration(iteration: number): object {
  return filled({ Index: iteration });
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
