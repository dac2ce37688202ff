import { EngineError } from '../../lib/errors.ts';
import { parsePattern, type Pattern } from '../../lib/notations/pattern.ts';
import { familiarName, familiarReference, type Reference } from './reference.ts';

/**
 * Whether a name matches one of the globs, or there are none. `*`, `?` and `[a-z]` do not match a slash. Throws
 * `invalid`.
 */
export function nameFilter(globs: readonly string[]): (reference: Reference) => boolean {
  if (globs.length === 0) return () => true;
  const patterns = globs.map((glob) => globPattern(glob.replace(/^(?:index\.)?docker\.io\/(?:library\/)?/, '')));
  return (reference) => {
    const names = [familiarName(reference.repository), familiarReference(reference)];
    return patterns.some((isLike) => names.some(isLike));
  };
}

function globPattern(glob: string): Pattern {
  const source = glob.replaceAll(/\*+|\?|\[\^?[^\]]+\]|\\.|[^\w/]/g, (part) => {
    if (part.startsWith('*')) return '[^/]*';
    if (part === '?') return '[^/]';
    if (part.length > 1 && part.startsWith('[')) return part;
    if (part === '[' || part === '\\') throw syntaxError();
    return `\\${part.at(-1)!}`;
  });
  const pattern = parsePattern(`^${source}$`);
  if (pattern === undefined) throw syntaxError();
  return pattern;
}

function syntaxError(): EngineError {
  return new EngineError('invalid', 'syntax error in pattern');
}
