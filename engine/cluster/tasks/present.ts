import { filled, omitEmpty } from '../services/omit-empty.ts';
import { presentIteration, presentNetworks, presentPort } from '../services/present.ts';
import { presentTaskTemplate } from '../services/task-template/present.ts';
import { presentGeneric } from '../services/task-template/resources.ts';
import type { NetworkRecord, Stored } from '../state/records.ts';
import { shownSlot } from '../state/task-states.ts';
import type { View } from '../state/view.ts';

/** The specification's "Task". */
export function presentTask(view: View, task: Stored<'task'>): object {
  const { id, version, createdAt, updatedAt, service, node, template, jobIteration, desired, status, addresses } = task;
  const generic = task.generic?.map(presentGeneric);
  const made = view.get('template', `${service}/${template}`);
  const isShown = view.get('service', service)?.spec.hasTaskNetworks === true;
  const networks = isShown ? presentNetworks(made?.networks ?? [], made?.template) : [];
  return {
    ID: id,
    Version: { Index: version },
    CreatedAt: createdAt,
    UpdatedAt: updatedAt,
    Labels: {},
    Spec: made === undefined ? {} : { ...presentTaskTemplate(made.template), ...filled({ Networks: networks }) },
    ServiceID: service,
    ...filled({ Slot: shownSlot(task) }),
    ...omitEmpty({ NodeID: node }),
    Status: {
      Timestamp: status.timestamp,
      State: status.state,
      Message: status.message,
      ...omitEmpty({ Err: status.error }),
      ...(status.container === undefined
        ? {}
        : {
            ContainerStatus: {
              ContainerID: status.container.id,
              PID: status.container.pid,
              ExitCode: status.container.exitCode,
            },
          }),
      PortStatus: omitEmpty({ Ports: status.ports?.map((port) => presentPort({ ...port, mode: 'host' })) }),
    },
    DesiredState: desired,
    // dockerd's name, and the one that its documentation has.
    ...filled({ GenericResources: generic, AssignedGenericResources: generic }),
    ...(jobIteration === undefined ? {} : { JobIteration: presentIteration(jobIteration) }),
    ...(addresses.length === 0
      ? {}
      : {
          NetworksAttachments: addresses.flatMap(({ network, address }) => {
            const record = view.get('network', network);
            return record === undefined ? [] : [{ Network: presentNetwork(record), Addresses: [address] }];
          }),
        }),
  };
}

/** The specification's network of an attachment. */
function presentNetwork(network: Stored<'network'>): object {
  const configs = network.subnets.map(({ subnet, gateway, range }) => ({
    Subnet: subnet,
    ...omitEmpty({ Range: range }),
    Gateway: gateway,
  }));
  return {
    ID: network.id,
    Version: { Index: network.version },
    CreatedAt: network.createdAt,
    UpdatedAt: network.updatedAt,
    Spec: presentNetworkSpec(network, configs),
    DriverState: {
      Name: 'overlay',
      Options: { 'com.docker.network.driver.overlay.vxlanid_list': String(network.vni) },
    },
    IPAMOptions: { Driver: { Name: 'default' }, Configs: configs },
  };
}

function presentNetworkSpec({ name, labels, ingress, internal, options }: NetworkRecord, configs: object[]): object {
  return {
    Name: name,
    Labels: labels,
    DriverConfiguration: { Name: 'overlay', ...(Object.keys(options).length === 0 ? {} : { Options: options }) },
    ...omitEmpty({ Ingress: ingress, Internal: internal }),
    IPAMOptions: { Driver: { Name: 'default' }, Configs: configs },
    Scope: 'swarm',
  };
}
