import { filled } from '../services/omit-empty.ts';
import { presentGeneric } from '../services/task-template/resources.ts';
import type { ManagerPlace, NodeDescription, NodeState, Stored } from '../state/records.ts';
import type { View } from '../state/view.ts';
import { clusterOf } from '../state/view.ts';
import { nodeTlsInfo } from '../swarm/present.ts';

/** `leader`: the id of the manager that leads. */
export function presentNode(view: View, node: Stored<'node'>, leader: string | undefined): object {
  const { spec, status, manager, description } = node;
  return {
    ID: node.id,
    Version: { Index: node.version },
    CreatedAt: node.createdAt,
    UpdatedAt: node.updatedAt,
    Spec: {
      ...(spec.name === '' ? {} : { Name: spec.name }),
      Labels: spec.labels,
      Role: spec.role,
      Availability: spec.availability,
    },
    Description: {
      ...(description === undefined ? NOTHING_KNOWN : presentDescription(description)),
      TLSInfo: nodeTlsInfo(clusterOf(view), node.tls),
    },
    Status: {
      State: status.state,
      ...(status.message === '' ? {} : { Message: status.message }),
      Addr: status.address,
    },
    ...(manager === undefined ? {} : { ManagerStatus: managerStatus(node, manager, leader) }),
  };
}

function managerStatus({ id, status }: Stored<'node'>, manager: ManagerPlace, leader: string | undefined): object {
  return {
    ...(id === leader ? { Leader: true } : {}),
    Reachability: reachability(status.state, manager),
    Addr: manager.address,
  };
}

/** As with dockerd, a member that cannot take part in decisions yet is `unreachable`. */
function reachability(state: NodeState, { isLearning }: ManagerPlace): string {
  if (isLearning === true || state === 'down') return 'unreachable';
  return state === 'ready' ? 'reachable' : 'unknown';
}

function presentDescription({ hostname, platform, resources, engine }: NodeDescription): object {
  return {
    Hostname: hostname,
    Platform: { Architecture: platform.architecture, OS: platform.os },
    Resources: {
      ...{ NanoCPUs: resources.nanoCpus, MemoryBytes: resources.memoryBytes },
      ...filled({ GenericResources: resources.generic?.map(presentGeneric) }),
    },
    Engine: {
      EngineVersion: engine.version,
      ...(Object.keys(engine.labels).length === 0 ? {} : { Labels: engine.labels }),
      Plugins: engine.plugins.map(({ type, name }) => ({ Type: type, Name: name })),
    },
  };
}

const NOTHING_KNOWN = { Platform: {}, Resources: {}, Engine: {} };
