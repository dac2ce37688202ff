import { EngineError } from '../../lib/errors.ts';
import { newClusterId } from '../ca/token.ts';
import type { WriteArguments } from '../leader/write-schemas.ts';
import type { Draft } from '../state/draft.ts';

/** POST /secrets/create and /configs/create, whose data a manager has sealed. Returns the id. */
export function createSecret(
  draft: Draft,
  { kind, ...fields }: WriteArguments<'createSecret'>,
  now: Temporal.Instant,
): string {
  const { name } = fields;
  if (draft.all(kind).some((other) => other.name === name)) {
    throw new EngineError('conflict', `rpc error: code = AlreadyExists desc = ${kind} ${name} already exists`);
  }
  const id = newClusterId();
  const at = now.toString();
  draft.put(kind, { id, createdAt: at, updatedAt: at, ...fields });
  return id;
}
