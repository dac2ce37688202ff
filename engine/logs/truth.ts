import { EngineError } from '../lib/errors.ts';

/** A boolean as Go reads it, with its words for an invalid one; empty is false. Throws `invalid`. */
export function isTrue(written = ''): boolean {
  if (['', '0', 'f', 'F', 'false', 'False', 'FALSE'].includes(written)) return false;
  if (['1', 't', 'T', 'true', 'True', 'TRUE'].includes(written)) return true;
  throw new EngineError('invalid', `strconv.ParseBool: parsing ${JSON.stringify(written)}: invalid syntax`);
}
