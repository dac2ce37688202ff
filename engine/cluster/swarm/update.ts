import { refuseIf } from '../../lib/errors.ts';
import { newSecret } from '../ca/token.ts';
import { newUnlockKey } from '../keys/unlock-key.ts';
import type { WriteArguments } from '../leader/write-schemas.ts';
import { refuseOldVersion, type Draft } from '../state/draft.ts';
import type { ClusterRecord, ClusterSpec } from '../state/records.ts';
import { clusterOf } from '../state/view.ts';

/** A cluster whose root was laid down has no key of its own to sign with. */
export function refuseWithoutKey({ ca }: Pick<ClusterRecord, 'ca'>, { externalCas }: ClusterSpec): void {
  refuseIf(
    ca.key === '' && externalCas.length === 0,
    'rpc error: code = InvalidArgument desc = the key of the root is not here: an external CA has to sign',
  );
}

/** POST /swarm/update; tokens of the old secrets are void. Managers take the unlock key from the record. */
export function updateCluster(
  draft: Draft,
  { spec, version, rotateWorker, rotateManager, rotateUnlockKey = false }: WriteArguments<'updateCluster'>,
  now: Temporal.Instant,
): void {
  const { unlockKey, ...cluster } = clusterOf(draft);
  refuseOldVersion(cluster, version);
  refuseWithoutKey(cluster, spec);
  const { joinSecrets } = cluster;
  draft.put('cluster', {
    ...cluster,
    spec,
    joinSecrets: {
      worker: rotateWorker ? newSecret() : joinSecrets.worker,
      manager: rotateManager ? newSecret() : joinSecrets.manager,
    },
    ...(spec.autoLock === true && { unlockKey: rotateUnlockKey ? newUnlockKey() : (unlockKey ?? newUnlockKey()) }),
    updatedAt: now.toString(),
  });
}
