import { EngineError } from '../../lib/errors.ts';
import type { Stored } from '../state/records.ts';
import type { View } from '../state/view.ts';
import type { SecretKind } from './kinds.ts';

/** The secret or config with this id, this name, or an id with this prefix; throws for none and for several. */
export function findSecret(view: View, kind: SecretKind, ref: string): Stored<SecretKind> {
  const exact = view.get(kind, ref) ?? view.all(kind).find(({ name }) => name === ref);
  if (exact !== undefined) return exact;
  const found = [...view.all(kind)].filter(({ id }) => ref !== '' && id.startsWith(ref));
  const [secret, another] = found;
  if (secret === undefined) throw new EngineError('notFound', `${kind} ${ref} not found`);
  if (another !== undefined)
    throw new EngineError('failed', `${kind} ${ref} is ambiguous (${found.length} matches found)`);
  return secret;
}
