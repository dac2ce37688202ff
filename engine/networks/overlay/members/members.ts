import { Type, type Static } from 'typebox';

import { lazyCheck } from '../../../lib/lazy-check.ts';
import {
  ClusterNameField,
  ContainerNameField,
  IdField,
  Ip4Field,
  IpField,
  limitedText,
  MomentField,
  PortField,
} from '../../../lib/notations/field-schemas.ts';
import { parseCidr } from '../../addresses/cidr.ts';

const Texts = Type.Immutable(Type.Array(limitedText()));
const Labels = Type.Record(Type.String(), Type.String());
const MAX_VNI = 0xff_ff_ff;

/** A task on a node, with its address in the network. */
const TaskMember = Type.Object({
  kind: Type.Literal('task'),
  id: IdField,
  service: IdField,
  /** Name of its container. */
  name: ContainerNameField,
  ip: Ip4Field,
  /** Address of its node. */
  host: IpField,
  /** Whether the service leads clients to it. */
  serves: Type.Boolean(),
});

/** A service with tasks in the network. */
const ServiceMember = Type.Object({
  kind: Type.Literal('service'),
  id: IdField,
  name: ClusterNameField,
  /** Further names in this network. */
  aliases: Texts,
  /** Its virtual address; without one its name leads to its tasks. */
  vip: Type.Optional(Ip4Field),
  /** Published on each node; only in the network `ingress`. */
  ports: Type.Immutable(
    Type.Array(
      Type.Object({
        protocol: Type.Union([Type.Literal('tcp'), Type.Literal('udp')]),
        published: PortField,
        target: PortField,
      }),
    ),
  ),
});

/** A node's own address in the network `ingress`. */
const NodeMember = Type.Object({
  kind: Type.Literal('node'),
  id: IdField,
  ip: Ip4Field,
  host: IpField,
});

/** A container of no service, in an attachable network. */
const ContainerMember = Type.Object({
  kind: Type.Literal('container'),
  id: IdField,
  name: ContainerNameField,
  /** Further names in this network. */
  aliases: Texts,
  ip: Ip4Field,
  host: IpField,
});

export const Member = Type.Union([TaskMember, ServiceMember, NodeMember, ContainerMember]);
export type Member = Readonly<Static<typeof Member>>;
export type TaskMember = Readonly<Static<typeof TaskMember>>;
export type ServiceMember = Readonly<Static<typeof ServiceMember>>;
type ContainerMember = Readonly<Static<typeof ContainerMember>>;

const CidrField = Type.Refine(
  Type.String(),
  (text) => parseCidr(text)?.range.family === 4,
  () => 'must be a range of IPv4 addresses',
);

/** A network of the cluster as a node gets to know it. Addresses are without prefix lengths, subnets have them. */
export const ClusterNetwork = Type.Object({
  id: IdField,
  name: ClusterNameField,
  createdAt: MomentField,
  labels: Labels,
  options: Labels,
  internal: Type.Boolean(),
  ingress: Type.Boolean(),
  vni: Type.Integer({ minimum: 1, maximum: MAX_VNI }),
  subnets: Type.Array(
    Type.Object({
      subnet: CidrField,
      gateway: Ip4Field,
      range: Type.Optional(CidrField),
      auxiliary: Type.Optional(Type.Record(Type.String(), Ip4Field)),
    }),
  ),
  attachable: Type.Optional(Type.Boolean()),
});
export type ClusterNetwork = Readonly<Static<typeof ClusterNetwork>>;

/**
 * News of one of a node's networks: first everything, with the network and the node's own address for the others; then
 * changes. `members` are new or changed, `gone` the ids of removed ones.
 */
export type NetworkNews = {
  id: string;
  whole?: { network: ClusterNetwork; local: string };
  members: Member[];
  gone: string[];
};

/** News as they arrive: each member is checked by itself (`checkedMembers`), so that a bad one costs no other one. */
export const NetworkNewsMessage = Type.Object({
  id: IdField,
  whole: Type.Optional(Type.Object({ network: ClusterNetwork, local: IpField })),
  members: Type.Array(Type.Unknown()),
  gone: Type.Array(IdField),
});
export type NetworkNewsMessage = Static<typeof NetworkNewsMessage>;

const memberCheck = lazyCheck(Member);

/** The members that this version understands, and the number of others. */
export function checkedMembers(members: readonly unknown[]): { members: Member[]; refused: number } {
  const good = members.filter((member) => memberCheck.Check(member));
  return { members: good, refused: members.length - good.length };
}

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
