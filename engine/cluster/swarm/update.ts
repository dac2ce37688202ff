import { refuseIf } from '../../lib/errors.ts';
import { issuingAuthority, signsFor, withWantedRoot } from '../ca/rotation.ts';
import { newSecret } from '../ca/token.ts';
import { newUnlockKey } from '../keys/unlock-key.ts';
import type { WriteArguments } from '../leader/write-schemas.ts';
import { refuseOldVersion, type Draft } from '../state/draft.ts';
import type { ClusterRecord, ClusterSpec } from '../state/records.ts';
import { clusterOf } from '../state/view.ts';

/** A cluster whose root was laid down has no key of its own to sign with. */
export function refuseWithoutKey(cluster: Pick<ClusterRecord, 'ca' | 'rotation'>, spec: ClusterSpec): void {
  const { certificate, key } = issuingAuthority(cluster);
  refuseIf(
    key === '' && !signsFor(spec, certificate, cluster),
    'rpc error: code = InvalidArgument desc = the key of the root is not here: an external CA has to sign',
  );
}

/**
 * POST /swarm/update; tokens of the old secrets are void. Managers take the unlock key from the record.
 * `elsewhere`: the rotation that it begins, if an external authority has signed the next root.
 */
export function updateCluster(
  draft: Draft,
  {
    spec,
    version,
    rotateWorker,
    rotateManager,
    rotateUnlockKey = false,
    signing = { certificate: '', key: '' },
  }: WriteArguments<'updateCluster'>,
  now: Temporal.Instant,
  elsewhere?: ClusterRecord['rotation'],
): void {
  const { unlockKey, ...before } = clusterOf(draft);
  refuseOldVersion(before, version);
  const cluster = withWantedRoot(before, spec, signing, now, elsewhere);
  refuseWithoutKey(cluster, spec);
  const { joinSecrets } = cluster;
  const ofPresentRoot = (external: ClusterSpec['externalCas'][number]): typeof external => {
    return { certificate: cluster.ca.certificate, ...external }; // the root that follows has others
  };
  draft.put('cluster', {
    ...cluster,
    spec: cluster.rotation === undefined ? spec : { ...spec, externalCas: spec.externalCas.map(ofPresentRoot) },
    joinSecrets: {
      worker: rotateWorker ? newSecret() : joinSecrets.worker,
      manager: rotateManager ? newSecret() : joinSecrets.manager,
    },
    ...(spec.autoLock === true && { unlockKey: rotateUnlockKey ? newUnlockKey() : (unlockKey ?? newUnlockKey()) }),
    updatedAt: now.toString(),
  });
}
