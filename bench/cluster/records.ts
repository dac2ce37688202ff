import type { ClusterRecord, NodeRecord } from '@gantry/engine/cluster/state/records.ts';

/** The id of the cluster. */
export const SIMULATED = 'simulated';
const NO_KEYS = { certificate: '', key: '' };

export function clusterRecord(now: Temporal.Instant): ClusterRecord {
  return {
    id: SIMULATED,
    createdAt: now.toString(),
    updatedAt: now.toString(),
    ca: NO_KEYS,
    peerCa: NO_KEYS,
    revokedPeers: [],
    joinSecrets: { worker: '', manager: '' },
    spec: {
      name: 'default',
      labels: {},
      taskHistoryRetentionLimit: 1,
      raft: {
        snapshotInterval: 10_000,
        keepOldSnapshots: 0,
        logEntriesForSlowFollowers: 500,
        heartbeatTick: 1,
        electionTick: 3,
      },
      heartbeatPeriodNs: 5e9,
      nodeCertExpiryNs: 7_776_000e9,
      externalCas: [],
    },
  };
}

/** As long as real ids. */
export function nodeIds(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `n${String(at).padStart(24, '0')}`);
}

export function nodeRecord(id: string, now: Temporal.Instant): NodeRecord {
  return {
    id,
    createdAt: now.toString(),
    updatedAt: now.toString(),
    spec: { name: '', labels: {}, role: 'worker', availability: 'active' },
    role: 'worker',
    status: { state: 'unknown', message: '', address: '' },
  };
}
