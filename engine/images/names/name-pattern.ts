import { EngineError } from '../../lib/errors.ts';
import { parsePatterns } from '../../lib/notations/pattern.ts';
import { familiarName, familiarReference, type Reference } from './reference.ts';

/**
 * Whether a name matches one of the globs, or there are none. `*`, `?` and `[a-z]` do not match a slash. Throws
 * `invalid`.
 */
export function nameFilter(globs: readonly string[]): (reference: Reference) => boolean {
  if (globs.length === 0) return () => true;
  const sources = globs.map((glob) => globSource(glob.replace(/^(?:index\.)?docker\.io\/(?:library\/)?/, '')));
  const patterns = parsePatterns(sources);
  // One of them may be no pattern: the globs have ranges of their own.
  if (patterns.length < sources.length) throw syntaxError();
  return (reference) => {
    const names = [familiarName(reference.repository), familiarReference(reference)];
    return patterns.some((isLike) => names.some(isLike));
  };
}

function globSource(glob: string): string {
  const source = glob.replaceAll(/\*+|\?|\[\^?[^\]]+\]|\\.|[^\w/:@-]/g, (part) => {
    if (part.startsWith('*')) return '[^/]*';
    if (part === '?') return '[^/]';
    if (part.length > 1 && part.startsWith('[')) return part;
    if (part === '[' || part === '\\') throw syntaxError();
    return `\\${part.at(-1)!}`;
  });
  return `^${source}$`;
}

function syntaxError(): EngineError {
  return new EngineError('invalid', 'syntax error in pattern');
}
