import { trustOf } from '../ca/rotation.ts';
import { newSecret } from '../ca/token.ts';
import type { Draft } from '../state/draft.ts';

/** Makes the root that follows the root of the cluster, once all nodes have a certificate of it; join tokens of before are void. */
export function finishRotation(draft: Draft, now: Temporal.Instant): void {
  const cluster = draft.get('cluster', '');
  if (cluster?.rotation === undefined) return;
  const { issuer } = trustOf(cluster);
  if (![...draft.all('node')].every(({ tls }) => tls?.issuer === issuer)) return;
  const { rotation, ...rest } = cluster;
  draft.put('cluster', {
    ...rest,
    ca: rotation.root,
    formerRoot: cluster.ca.certificate,
    joinSecrets: { worker: newSecret(), manager: newSecret() },
    updatedAt: now.toString(),
  });
}
