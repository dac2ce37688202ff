import { EngineError } from '../../lib/errors.ts';
import type { Stored } from '../state/records.ts';
import type { View } from '../state/view.ts';

/** The service with this id, this name, or an id with this prefix; throws for none and for several. */
export function findService(view: View, ref: string): Stored<'service'> {
  const exact = view.get('service', ref) ?? view.all('service').find(({ spec }) => spec.name === ref);
  if (exact !== undefined) return exact;
  const found = [...view.all('service')].filter(({ id }) => ref !== '' && id.startsWith(ref));
  const [service, another] = found;
  if (service === undefined) throw new EngineError('notFound', `service ${ref} not found`);
  if (another !== undefined)
    throw new EngineError('failed', `service ${ref} is ambiguous (${found.length} matches found)`);
  return service;
}
