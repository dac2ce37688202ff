import { EngineError } from '../lib/errors.ts';
import type { NetworkRecord } from './store.ts';

/** One of several networks, by its id, its name, or a unique prefix of its id. Throws `notFound` and `invalid`. */
export function findIn(networks: readonly NetworkRecord[], ref: string): NetworkRecord {
  const byId = networks.find(({ id }) => id === ref);
  if (byId !== undefined) return byId;
  const named = networks.filter(({ name }) => name === ref);
  if (named.length > 1) throw ambiguous(ref, named.length, 'name');
  if (named[0] !== undefined) return named[0];
  const [first, ...more] = ref === '' ? [] : networks.filter(({ id }) => id.startsWith(ref));
  if (first === undefined) throw new EngineError('notFound', `network ${ref} not found`);
  if (more.length > 0) throw ambiguous(ref, more.length + 1, 'ID prefix');
  return first;
}

function ambiguous(ref: string, count: number, by: string): EngineError {
  return new EngineError('invalid', `network ${ref} is ambiguous (${count} matches found based on ${by})`);
}
