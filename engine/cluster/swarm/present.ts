import { X509Certificate } from 'node:crypto';

import { DEFAULT_VXLAN_PORT } from '../../host/network/vxlan.ts';
import { issuerOf } from '../ca/certificates.ts';
import { issuerDigest, issuingAuthority, trustDigest } from '../ca/rotation.ts';
import { tokenOf } from '../ca/token.ts';
import { DEFAULT_POOLS, DEFAULT_SUBNET_SIZE } from '../networks/subnets.ts';
import type { ClusterRecord, ClusterSpec, NodeRecord, Stored } from '../state/records.ts';

/** GET /swarm without the tokens, as /info has it. */
export function presentCluster(cluster: Stored<'cluster'>): object {
  return {
    ID: cluster.id,
    Version: { Index: cluster.version },
    CreatedAt: cluster.createdAt,
    UpdatedAt: cluster.updatedAt,
    Spec: presentSpec(cluster.spec),
    TLSInfo: tlsInfo(cluster),
    RootRotationInProgress: cluster.rotation !== undefined,
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
function tlsInfo(cluster: Pick<ClusterRecord, 'ca' | 'rotation'>): object {
  return presentTls(cluster.ca.certificate, issuingAuthority(cluster).certificate);
}

/** `TLSInfo` of a node, by what it has said last; empty if it trusts a root that the cluster has forgotten. */
export function nodeTlsInfo(cluster: ClusterRecord, tls: NodeRecord['tls']): object {
  if (tls === undefined) return presentTls(cluster.ca.certificate, cluster.ca.certificate); // of an earlier version
  const known = [cluster.ca.certificate, cluster.rotation?.root.certificate, cluster.formerRoot];
  const roots = known.filter((root) => root !== undefined);
  const root = roots.find((each) => trustDigest(each) === tls.root);
  const issuer = roots.find((each) => issuerDigest(each) === tls.issuer);
  return root === undefined || issuer === undefined ? {} : presentTls(root, issuer);
}

function presentTls(root: string, issuer: string): object {
  const key = new X509Certificate(issuer).publicKey.export({ type: 'spki', format: 'der' });
  return {
    TrustRoot: root,
    CertIssuerSubject: issuerOf({ certificate: issuer }).toString('base64'),
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
  forceRotate = 0,
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
      ...(forceRotate === 0 ? {} : { ForceRotate: forceRotate }),
      ...(externalCas.length === 0
        ? {}
        : {
            ExternalCAs: externalCas.map(({ protocol, url, options, certificate }) => ({
              Protocol: protocol,
              URL: url,
              ...(Object.keys(options).length === 0 ? {} : { Options: options }),
              ...(certificate === undefined ? {} : { CACert: certificate }),
            })),
          }),
    },
    TaskDefaults: logDriver === undefined ? {} : { LogDriver: { Name: logDriver.name, Options: logDriver.options } },
    EncryptionConfig: { AutoLockManagers: autoLock },
  };
}
