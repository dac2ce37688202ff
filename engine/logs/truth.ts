import { EngineError } from '../lib/errors.ts';

/** A truth value as Go reads it; empty is false. Throws `invalid`. */
export function isTrue(option: string, written = ''): boolean {
  if (['', '0', 'f', 'F', 'false', 'False', 'FALSE'].includes(written)) return false;
  if (['1', 't', 'T', 'true', 'True', 'TRUE'].includes(written)) return true;
  throw new EngineError(
    'invalid',
    `invalid ${option}: strconv.ParseBool: parsing ${JSON.stringify(written)}: invalid syntax`,
  );
}
