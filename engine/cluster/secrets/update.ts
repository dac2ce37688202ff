import type { WriteArguments } from '../leader/write-schemas.ts';
import { refuseArgument } from '../services/refuse-argument.ts';
import { refuseOldVersion, type Draft } from '../state/draft.ts';
import type { SecretRecord } from '../state/records.ts';
import { findSecret } from './find.ts';
import type { SecretBody } from './schema.ts';
import { readData } from './spec.ts';

/** Refuses an update of anything but labels. `data` is the present data, which an update may repeat. */
export function refuseChanges({ name }: Pick<SecretRecord, 'name'>, data: Buffer, { Name, Data }: SecretBody): void {
  const isChanged = Name !== name || (Data !== undefined && Data !== null && !readData(Data).equals(data));
  refuseArgument(isChanged, 'only updates to Labels are allowed');
}

/** POST /secrets/{id}/update and /configs/{id}/update. */
export function updateSecret(
  draft: Draft,
  { kind, ref, version, labels }: WriteArguments<'updateSecret'>,
  now: Temporal.Instant,
): void {
  const secret = findSecret(draft, kind, ref);
  refuseOldVersion(secret, version);
  draft.put(kind, { ...secret, labels, updatedAt: now.toString() });
}
