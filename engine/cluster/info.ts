import { Type, type Static } from 'typebox';

import { LOCKED, type Cluster } from './cluster.ts';
import { readAddress } from './membership/addresses.ts';
import type { Identity } from './membership/identity.ts';
import type { Member } from './membership/member.ts';
import { presentCluster } from './swarm/present.ts';

const text = Type.String();

/** `Swarm` of GET /info. */
export const SwarmInfo = Type.Object({
  NodeID: text,
  NodeAddr: text,
  LocalNodeState: text,
  ControlAvailable: Type.Boolean(),
  Error: text,
  RemoteManagers: Type.Union([Type.Array(Type.Object({ NodeID: text, Addr: text })), Type.Null()]),
  Nodes: Type.Optional(Type.Integer()),
  Managers: Type.Optional(Type.Integer()),
  Cluster: Type.Optional(Type.Object({}, { description: 'As of GET /swarm, without the tokens' })),
  Warnings: Type.Optional(Type.Array(text)),
});
type SwarmInfo = Static<typeof SwarmInfo>;

/** Presents this node's membership without asking other nodes. */
export async function swarmInfo({ locked, member }: Cluster): Promise<SwarmInfo> {
  if (locked !== undefined) {
    return { ...OUTSIDE, NodeAddr: addressOf(locked), LocalNodeState: 'locked', Error: LOCKED };
  }
  if (member === undefined) return OUTSIDE;
  const { identity, manager, problem } = member;
  return {
    NodeID: identity.nodeId,
    NodeAddr: addressOf(identity),
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

/** The header `Swarm` of `/_ping`. */
export function swarmState({ locked, member }: Cluster): string {
  if (locked !== undefined) return 'locked';
  if (member === undefined) return OUTSIDE.LocalNodeState;
  const state = stateOf(member);
  return state === 'active' ? `active/${member.manager === undefined ? 'worker' : 'manager'}` : state;
}

function addressOf({ advertise }: Identity): string {
  return readAddress(advertise).ip;
}

function stateOf({ identity, manager }: Member): string {
  const isBecoming = identity.role === 'manager' && manager === undefined;
  return isBecoming ? 'pending' : 'active';
}

async function ofManager({ manager }: Member): Promise<Partial<SwarmInfo>> {
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
