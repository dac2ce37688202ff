import type { EndpointPort, EndpointSpec, ServiceSpec, Stored, UpdateConfig } from '../state/records.ts';
import { filled, omitEmpty } from './omit-empty.ts';
import { presentTaskTemplate } from './task-template/present.ts';

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
    TaskTemplate: { ...presentTaskTemplate(template), Runtime: 'container' },
    Mode: mode.kind === 'global' ? { Global: {} } : { Replicated: { Replicas: mode.replicas } },
    ...omitEmpty({
      UpdateConfig: update && presentUpdate(update),
      RollbackConfig: rollback && presentUpdate(rollback),
    }),
    ...filled({
      Networks: networks.map(({ target, aliases, driverOpts }) => ({
        Target: target,
        ...filled({ Aliases: aliases, DriverOpts: driverOpts }),
      })),
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
