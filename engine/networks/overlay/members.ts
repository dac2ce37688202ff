import { Type, type Static } from 'typebox';

const Texts = Type.Immutable(Type.Array(Type.String()));

/** A task on a node, with its address in the network. */
const TaskMember = Type.Object({
  kind: Type.Literal('task'),
  id: Type.String(),
  service: Type.String(),
  /** Name of its container. */
  name: Type.String(),
  ip: Type.String(),
  /** The address of its node. */
  host: Type.String(),
  /** Whether the service leads clients to it. */
  serves: Type.Boolean(),
});

/** A service with tasks in the network. */
const ServiceMember = Type.Object({
  kind: Type.Literal('service'),
  id: Type.String(),
  name: Type.String(),
  /** Further names in this network. */
  aliases: Texts,
  /** Its virtual address; without one its name leads to its tasks. */
  vip: Type.Optional(Type.String()),
  /** Published on each node; only in the network `ingress`. */
  ports: Type.Immutable(
    Type.Array(
      Type.Object({
        protocol: Type.Union([Type.Literal('tcp'), Type.Literal('udp')]),
        published: Type.Integer(),
        target: Type.Integer(),
      }),
    ),
  ),
});

/** A node's own address in the network `ingress`. */
const NodeMember = Type.Object({
  kind: Type.Literal('node'),
  id: Type.String(),
  ip: Type.String(),
  host: Type.String(),
});

/** A container of no service, in an attachable network. */
const ContainerMember = Type.Object({
  kind: Type.Literal('container'),
  id: Type.String(),
  name: Type.String(),
  /** Further names in this network. */
  aliases: Texts,
  ip: Type.String(),
  host: Type.String(),
});

export const Member = Type.Union([TaskMember, ServiceMember, NodeMember, ContainerMember]);
export type Member = Readonly<Static<typeof Member>>;
export type TaskMember = Readonly<Static<typeof TaskMember>>;
export type ServiceMember = Readonly<Static<typeof ServiceMember>>;
export type ContainerMember = Readonly<Static<typeof ContainerMember>>;

/** A network of the cluster as a node gets to know it. Addresses are without prefix lengths, subnets have them. */
export const ClusterNetwork = Type.Object({
  id: Type.String(),
  name: Type.String(),
  createdAt: Type.String(),
  labels: Type.Record(Type.String(), Type.String()),
  options: Type.Record(Type.String(), Type.String()),
  internal: Type.Boolean(),
  ingress: Type.Boolean(),
  vni: Type.Integer(),
  subnets: Type.Array(
    Type.Object({
      subnet: Type.String(),
      gateway: Type.String(),
      range: Type.Optional(Type.String()),
      auxiliary: Type.Optional(Type.Record(Type.String(), Type.String())),
    }),
  ),
  attachable: Type.Optional(Type.Boolean()),
});
export type ClusterNetwork = Readonly<Static<typeof ClusterNetwork>>;

/**
 * News of one of a node's networks: first everything, with the network and its own address for the others; then
 * changes. `members` are new or changed, `gone` the ids of those that are not there any more.
 */
export const NetworkNews = Type.Object({
  id: Type.String(),
  whole: Type.Optional(Type.Object({ network: ClusterNetwork, local: Type.String() })),
  members: Type.Array(Member),
  gone: Type.Array(Type.String()),
});
export type NetworkNews = Static<typeof NetworkNews>;

/** The members by their kind. */
export function tasksIn(members: Iterable<Member>): TaskMember[] {
  return [...members].filter((member) => member.kind === 'task');
}

export function containersIn(members: Iterable<Member>): ContainerMember[] {
  return [...members].filter((member) => member.kind === 'container');
}

export function servicesIn(members: Iterable<Member>): ServiceMember[] {
  return [...members].filter((member) => member.kind === 'service');
}

/** The hosts of the addresses that are not on this one. */
export function remoteIn(members: Iterable<Member>, local: string): Map<string, string> {
  const remote = new Map<string, string>();
  for (const member of members) {
    if (member.kind !== 'service' && member.host !== local) remote.set(member.ip, member.host);
  }
  return remote;
}

/** The tasks of each service that clients are led to, by the service's id; in the order of their ids. */
export function servingIn(members: Iterable<Member>): Map<string, TaskMember[]> {
  const serving = tasksIn(members).filter(({ serves }) => serves);
  return Map.groupBy(
    serving.toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    ({ service }) => service,
  );
}
