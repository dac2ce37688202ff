import type { WriteArguments } from '../leader/write-schemas.ts';
import type { Draft } from '../state/draft.ts';
import { findService } from './find.ts';

/** DELETE /services/{id}. Its tasks follow. */
export function removeService(draft: Draft, ref: WriteArguments<'removeService'>): void {
  const { id } = findService(draft, ref);
  draft.delete('service', id);
}
