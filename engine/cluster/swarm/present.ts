import { X509Certificate } from 'node:crypto';

import { DEFAULT_VXLAN_PORT } from '../../host/network/vxlan.ts';
import { issuerOf } from '../ca/certificates.ts';
import { tokenOf } from '../ca/token.ts';
import { DEFAULT_POOLS, DEFAULT_SUBNET_SIZE } from '../networks/subnets.ts';
import type { ClusterRecord, ClusterSpec, Stored } from '../state/records.ts';

/** GET /swarm without the tokens, as /info has it. */
export function presentCluster(cluster: Stored<'cluster'>): object {
  return {
    ID: cluster.id,
    Version: { Index: cluster.version },
    CreatedAt: cluster.createdAt,
    UpdatedAt: cluster.updatedAt,
    Spec: presentSpec(cluster.spec),
    TLSInfo: tlsInfo(cluster),
    RootRotationInProgress: false,
    DefaultAddrPool: cluster.addressPools ?? DEFAULT_POOLS,
    SubnetSize: cluster.subnetSize ?? DEFAULT_SUBNET_SIZE,
    DataPathPort: cluster.tunnelPort ?? DEFAULT_VXLAN_PORT,
  };
}

export function presentWithTokens(cluster: Stored<'cluster'>): object {
  const { certificate } = cluster.ca;
  const { worker, manager } = cluster.joinSecrets;
  return {
    ...presentCluster(cluster),
    JoinTokens: { Worker: tokenOf(certificate, worker), Manager: tokenOf(certificate, manager) },
  };
}

/** Data to check certificates of this cluster. */
export function tlsInfo({ ca }: Pick<ClusterRecord, 'ca'>): object {
  const key = new X509Certificate(ca.certificate).publicKey.export({ type: 'spki', format: 'der' });
  return {
    TrustRoot: ca.certificate,
    CertIssuerSubject: issuerOf(ca).toString('base64'),
    CertIssuerPublicKey: key.toString('base64'),
  };
}

function presentSpec({
  name,
  labels,
  taskHistoryRetentionLimit,
  raft,
  heartbeatPeriodNs,
  nodeCertExpiryNs,
  externalCas,
  logDriver,
  autoLock = false,
}: ClusterSpec): object {
  return {
    Name: name,
    Labels: labels,
    Orchestration: { TaskHistoryRetentionLimit: taskHistoryRetentionLimit },
    Raft: {
      SnapshotInterval: raft.snapshotInterval,
      KeepOldSnapshots: raft.keepOldSnapshots,
      LogEntriesForSlowFollowers: raft.logEntriesForSlowFollowers,
      ElectionTick: raft.electionTick,
      HeartbeatTick: raft.heartbeatTick,
    },
    Dispatcher: { HeartbeatPeriod: heartbeatPeriodNs },
    CAConfig: {
      NodeCertExpiry: nodeCertExpiryNs,
      ...(externalCas.length === 0
        ? {}
        : {
            ExternalCAs: externalCas.map(({ protocol, url, options }) => ({
              Protocol: protocol,
              URL: url,
              ...(Object.keys(options).length === 0 ? {} : { Options: options }),
            })),
          }),
    },
    TaskDefaults: logDriver === undefined ? {} : { LogDriver: { Name: logDriver.name, Options: logDriver.options } },
    EncryptionConfig: { AutoLockManagers: autoLock },
  };
}
