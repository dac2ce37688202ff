import type { Etcd } from './gateway.ts';
import type { Member } from './messages.ts';

type WireMember = { ID: string; name?: string; peerURLs?: string[]; isLearner?: boolean };

/** The members, as this one knows them. */
export async function listMembers(etcd: Etcd, milliseconds?: number): Promise<Member[]> {
  const answer = await etcd.call('/v3/cluster/member/list', {}, milliseconds);
  return ((answer.members ?? []) as WireMember[]).map(readMember);
}

/** Adds a member that only listens, until `promoteMember`. */
export async function addLearner(etcd: Etcd, peerUrl: string): Promise<{ id: string; members: Member[] }> {
  const answer = await etcd.call('/v3/cluster/member/add', { peerURLs: [peerUrl], isLearner: true });
  const members = ((answer.members ?? []) as WireMember[]).map(readMember);
  return { id: (answer.member as WireMember).ID, members };
}

export async function promoteMember(etcd: Etcd, id: string): Promise<void> {
  await etcd.call('/v3/cluster/member/promote', { ID: id });
}

export async function removeMember(etcd: Etcd, id: string): Promise<void> {
  await etcd.call('/v3/cluster/member/remove', { ID: id });
}

/** The ids of this member and of the one that leads raft; `0` for none. */
export async function raftOf(etcd: Etcd, milliseconds?: number): Promise<{ self: string; leader: string }> {
  const { header, leader } = (await etcd.call('/v3/maintenance/status', {}, milliseconds)) as {
    header: { member_id: string };
    leader?: string;
  };
  return { self: header.member_id, leader: leader ?? '0' };
}

/** Gives raft's leadership, which must be this member's, to another. */
async function moveLeadership(etcd: Etcd, to: string): Promise<void> {
  await etcd.call('/v3/maintenance/transfer-leadership', { targetID: to });
}

/** Gives raft's leadership, if it is this member's, to another that votes, if there is one. */
export async function stepAside(etcd: Etcd, milliseconds?: number): Promise<void> {
  const { self, leader } = await raftOf(etcd, milliseconds);
  if (self !== leader) return;
  const others = (await listMembers(etcd, milliseconds)).filter(({ id, isLearner }) => id !== self && !isLearner);
  if (others[0] !== undefined) await moveLeadership(etcd, others[0].id);
}

function readMember({ ID, name = '', peerURLs = [], isLearner = false }: WireMember): Member {
  return { id: ID, name, peerUrls: peerURLs, isLearner };
}
