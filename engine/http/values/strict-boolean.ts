import { EngineError } from '../../lib/errors.ts';

const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'true', 'True', 'TRUE']);
const FALSE: ReadonlySet<string> = new Set(['', '0', 'f', 'F', 'false', 'False', 'FALSE']);

/** Parses a boolean of which dockerd, unlike for others, refuses any other word; empty is false. Throws `invalid`. */
export function parseStrictBoolean(name: string, text = ''): boolean {
  if (TRUE.has(text)) return true;
  if (FALSE.has(text)) return false;
  throw new EngineError('invalid', `invalid value for ${name}: ${text}`);
}
