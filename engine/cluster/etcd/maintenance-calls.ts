import { EtcdError, type Etcd } from './gateway.ts';

/** A member, as it sees itself: its id and that of the member which leads raft (`0` for none), and its file. */
export type Status = Readonly<{ self: string; leader: string; bytes: number; usedBytes: number; isFull: boolean }>;

/** Rewriting a file of 2 GB takes a while, and nothing else is answered meanwhile. */
const DEFRAGMENT_TIMEOUT_MS = 180_000;
const COMPACT_TIMEOUT_MS = 60_000;
const OUT_OF_RANGE = 11;

/** Asks this member only, so it answers without a quorum too. */
export async function statusOf(etcd: Etcd, milliseconds?: number): Promise<Status> {
  const { header, leader, dbSize, dbSizeInUse, errors } = (await etcd.call(
    '/v3/maintenance/status',
    {},
    milliseconds,
  )) as { header: { member_id: string }; leader?: string; dbSize?: string; dbSizeInUse?: string; errors?: string[] };
  const self = header.member_id;
  return {
    self,
    leader: leader ?? '0',
    bytes: Number(dbSize ?? 0),
    usedBytes: Number(dbSizeInUse ?? 0),
    // Alarms of all members: a full one lets nobody write.
    isFull: (errors ?? []).some((error) => error.includes('NOSPACE')),
  };
}

/** Forgets what records were before this revision, on all members; on this one the room is free when it returns. */
export async function compact(etcd: Etcd, revision: number): Promise<void> {
  try {
    await etcd.call('/v3/kv/compaction', { revision: String(revision), physical: true }, COMPACT_TIMEOUT_MS);
  } catch (error) {
    if (!(error instanceof EtcdError) || error.code !== OUT_OF_RANGE) throw error; // it was done before
  }
}

/** Gives what this member does not use of its file back to the disk. */
export async function defragment(etcd: Etcd): Promise<void> {
  await etcd.call('/v3/maintenance/defragment', {}, DEFRAGMENT_TIMEOUT_MS);
}

/** Lets all members write again, if this one was full. */
export async function disarm(etcd: Etcd, member: string): Promise<void> {
  await etcd.call('/v3/maintenance/alarm', { action: 'DEACTIVATE', memberID: member, alarm: 'NOSPACE' });
}
