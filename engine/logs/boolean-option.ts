import { EngineError } from '../lib/errors.ts';
import { booleanRefusal, parseBoolean } from '../lib/notations/boolean.ts';

/** The value of a boolean log option; an empty one is false. Throws `invalid`, in Go's words. */
export function booleanOption(written = ''): boolean {
  const parsed = written === '' ? false : parseBoolean(written);
  if (parsed === undefined) throw new EngineError('invalid', booleanRefusal(written));
  return parsed;
}
