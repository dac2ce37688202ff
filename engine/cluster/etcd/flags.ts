import { join } from 'node:path';

import type { ClusterSpec } from '../state/records.ts';

/** The folders of a member: PEM files for its peers, its data, and the one that has its socket. */
type EtcdPlace = Readonly<{ program: string; data: string; peers: string; run: string }>;

export type EtcdSettings = Readonly<{
  /** Name of the node. */
  name: string;
  place: EtcdPlace;
  /** `ip:port`. */
  listen: string;
  advertise: string;
  raft: ClusterSpec['raft'];
  /** The largest file; a member with more lets nobody write. */
  quotaBytes: number;
  /** Superseded revisions are removed after this time, such as `1m`. */
  history: string;
}>;

/** Words of the first start alone: the members with their addresses, or that it goes on alone. */
export type FirstStart =
  | Readonly<{ state: 'new' | 'existing'; members: readonly Readonly<{ name: string; peerUrl: string }>[] }>
  | 'forced';

const TICK_MS = 100;
const MAX_ELECTION_MS = 50_000;
export const QUOTA_BYTES = 2 * 1024 ** 3;
export const HISTORY = '1m';

/** The command line without the flags of a first start. */
export function etcdFlags({ name, place, listen, advertise, raft, quotaBytes, history }: EtcdSettings): string[] {
  const heartbeatMs = Math.min(Math.max(raft.heartbeatTick, 1) * TICK_MS, MAX_ELECTION_MS / 5);
  const electionMs = Math.min(Math.max(raft.electionTick * TICK_MS, 5 * heartbeatMs), MAX_ELECTION_MS);
  return [
    `--name=${name}`,
    `--data-dir=${place.data}`,
    '--listen-client-urls=unix://client:0',
    '--advertise-client-urls=unix://client:0',
    `--listen-peer-urls=https://${listen}`,
    `--initial-advertise-peer-urls=https://${advertise}`,
    `--peer-cert-file=${join(place.peers, 'certificate.pem')}`,
    `--peer-key-file=${join(place.peers, 'key.pem')}`,
    `--peer-trusted-ca-file=${join(place.peers, 'ca.pem')}`,
    `--peer-crl-file=${join(place.peers, 'crl.der')}`,
    '--peer-client-cert-auth',
    '--experimental-peer-skip-client-san-verification',
    '--pre-vote',
    '--max-txn-ops=2000',
    `--heartbeat-interval=${heartbeatMs}`,
    `--election-timeout=${electionMs}`,
    `--snapshot-count=${raft.snapshotInterval || 10_000}`,
    `--max-snapshots=${Math.max(raft.keepOldSnapshots, 1)}`,
    `--quota-backend-bytes=${quotaBytes}`,
    '--auto-compaction-mode=periodic',
    `--auto-compaction-retention=${history}`,
    '--strict-reconfig-check',
    '--logger=zap',
    '--log-level=warn',
  ];
}

export function firstFlags(first: FirstStart | undefined): string[] {
  if (first === undefined) return [];
  if (first === 'forced') return ['--force-new-cluster'];
  const members = first.members.map(({ name, peerUrl }) => `${name}=${peerUrl}`);
  return [`--initial-cluster-state=${first.state}`, `--initial-cluster=${members.join(',')}`];
}

/** Flags that take effect at the next start: a running etcd with others is not restarted for them. */
export const DEFERRED_FLAGS =
  /^--(?:initial-cluster|force-new|heartbeat-interval|election-timeout|snapshot-count|max-snapshots|auto-compaction)/;
