import type { Info } from '../system/schema.ts';
import type { Cluster } from './cluster.ts';
import type { Member } from './membership/member.ts';
import { presentCluster } from './swarm/present.ts';

/** `Swarm` of GET /info: what this node knows by itself, without asking others. */
export async function swarmInfo({ member }: Cluster): Promise<Info['Swarm']> {
  if (member === undefined) return OUTSIDE;
  const { identity, manager, problem } = member;
  return {
    NodeID: identity.nodeId,
    NodeAddr: identity.advertise.slice(0, identity.advertise.lastIndexOf(':')).replaceAll(/[[\]]/g, ''),
    LocalNodeState: stateOf(member),
    ControlAvailable: manager !== undefined,
    Error: problem,
    RemoteManagers: identity.managers.map(({ id, address }) => ({ NodeID: id, Addr: address })),
    ...(await ofManager(member)),
  };
}

const OUTSIDE = {
  NodeID: '',
  NodeAddr: '',
  LocalNodeState: 'inactive',
  ControlAvailable: false,
  Error: '',
  RemoteManagers: null,
};

function stateOf({ identity, manager }: Member): string {
  const isBecoming = identity.role === 'manager' && manager === undefined;
  return isBecoming ? 'pending' : 'active';
}

async function ofManager({ manager }: Member): Promise<Partial<Info['Swarm']>> {
  const cluster = manager?.replica.get('cluster', '');
  if (manager === undefined || cluster === undefined) return {};
  const nodes = [...manager.replica.all('node')];
  const managers = nodes.filter(({ spec }) => spec.role === 'manager').length;
  return {
    Nodes: nodes.length,
    Managers: managers,
    Cluster: presentCluster(cluster),
    ...(managers === 2 ? { Warnings: [TWO_MANAGERS] } : {}),
  };
}

const TWO_MANAGERS =
  'WARNING: Running Swarm in a two-manager configuration. This configuration provides\n         no fault tolerance, and poses a high risk to lose control over the cluster.\n         Refer to https://docs.docker.com/engine/swarm/admin_guide/ to configure the\n         Swarm for fault-tolerance.';
