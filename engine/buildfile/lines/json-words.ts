import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import { EngineError } from '../../lib/errors.ts';

/**
 * The words of an instruction's JSON form, `["a", "b"]`; undefined for anything but JSON, which is then a command for
 * the shell. As in docker, text behind the closing bracket is ignored.
 *
 * Throws `invalid` for a list of anything but strings.
 */
export function jsonWords(text: string): string[] | undefined {
  const list = listIn(text.trimStart());
  if (list === undefined) return undefined;
  if (!list.every((word) => typeof word === 'string')) {
    throw new EngineError('invalid', 'when using JSON array syntax, arrays must be comprised of strings only');
  }
  if (list.some((word) => word.includes('\0'))) throw new EngineError('invalid', 'a word has a NUL character');
  return list;
}

function listIn(text: string): unknown[] | undefined {
  if (!text.startsWith('[')) return undefined;
  try {
    const parsed = parseBoundedJson(text.slice(0, endOfList(text)));
    return Array.isArray(parsed) ? parsed : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    if (error instanceof UnboundedJsonError) throw new EngineError('invalid', `JSON array syntax: ${error.message}`);
    throw error;
  }
}

/** Behind the bracket that closes the first one. */
function endOfList(text: string): number {
  let depth = 0;
  let isText = false;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (isText) {
      if (sign === '\\') at += 1;
      else if (sign === '"') isText = false;
    } else if (sign === '"') isText = true;
    else if (sign === '[' || sign === '{') depth += 1;
    else if (sign === ']' || sign === '}') depth -= 1;
    if (depth === 0) return at + 1;
  }
  return text.length;
}
