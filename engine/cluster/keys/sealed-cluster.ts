import { decrypt, encrypt } from '../../lib/encryption.ts';
import { EngineError } from '../../lib/errors.ts';
import type { ClusterRecord } from '../state/records.ts';

/** Fields of the record of a cluster with locked managers that etcd stores encrypted. */
type Hidden = Pick<ClusterRecord, 'joinSecrets' | 'unlockKey'> &
  Readonly<{ caKey: string; peerCaKey: string; rotationKey?: string | undefined }>;

/**
 * The record as etcd stores it: where managers are locked, its keys and the secrets of tokens are encrypted by the data key, which
 * is on no disk then but encrypted by the unlock key. Throws `unavailable` without the data key.
 */
export function sealCluster(cluster: ClusterRecord, dataKey: () => Buffer | undefined): ClusterRecord {
  const { ca, peerCa, joinSecrets, rotation, unlockKey, ...rest } = cluster;
  if (unlockKey === undefined) return cluster;
  const key = dataKey();
  if (key === undefined) throw new EngineError('unavailable', 'this manager does not have the key of the cluster yet');
  const keys = { caKey: ca.key, peerCaKey: peerCa.key, rotationKey: rotation?.root.key };
  const hidden: Hidden = { joinSecrets, unlockKey, ...keys };
  return {
    ...rest,
    ca: { ...ca, key: '' },
    peerCa: { ...peerCa, key: '' },
    ...(rotation !== undefined && { rotation: { ...rotation, root: { ...rotation.root, key: '' } } }),
    joinSecrets: { worker: '', manager: '' },
    sealed: encrypt(key, labelOf(cluster), Buffer.from(JSON.stringify(hidden))).toString('base64'),
  };
}

/** The reverse of `sealCluster`; the record stays sealed where its data key is not at hand. */
export function openCluster<C extends ClusterRecord>(
  cluster: C,
  dataKey: (digest: string | undefined) => Buffer | undefined,
): C {
  const { sealed, ...rest } = cluster;
  const key = sealed === undefined ? undefined : dataKey(cluster.dataKey);
  const text = key === undefined ? undefined : decrypt(key, labelOf(cluster), Buffer.from(sealed!, 'base64'));
  if (text === undefined) return cluster;
  const { caKey, peerCaKey, rotationKey = '', ...hidden } = JSON.parse(text.toString()) as Hidden;
  const { rotation } = cluster;
  return {
    ...rest,
    ...hidden,
    ca: { ...cluster.ca, key: caKey },
    peerCa: { ...cluster.peerCa, key: peerCaKey },
    ...(rotation !== undefined && { rotation: { ...rotation, root: { ...rotation.root, key: rotationKey } } }),
  } as C;
}

function labelOf({ id }: ClusterRecord): string {
  return `cluster/${id}`;
}
