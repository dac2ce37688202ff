import type { Draft } from '../state/draft.ts';
import { findService } from './find.ts';

/** DELETE /services/{id}. Its tasks follow. */
export function removeService(draft: Draft, args: unknown): void {
  const { id } = findService(draft, String(args));
  draft.delete('service', id);
}
