import { EngineError } from '../../lib/errors.ts';
import type { Stored } from '../state/records.ts';
import type { View } from '../state/view.ts';

/** The node with this id, this host name, or an id with this prefix; throws for none and for several. */
export function findNode(view: View, ref: string): Stored<'node'> {
  const exact = view.get('node', ref);
  if (exact !== undefined) return exact;
  const all = [...view.all('node')];
  const named = all.filter(({ description }) => description?.hostname === ref);
  const found = named.length > 0 ? named : all.filter(({ id }) => ref !== '' && id.startsWith(ref));
  const [node, another] = found;
  if (node === undefined) throw new EngineError('notFound', `node ${ref} not found`);
  if (another !== undefined) {
    throw new EngineError('failed', `node ${ref} is ambiguous (${found.length} matches found)`);
  }
  return node;
}
