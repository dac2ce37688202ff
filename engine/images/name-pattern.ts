import { familiarName, familiarReference, type Reference } from './reference.ts';

/** Whether a name is like one of the patterns; with none, every name is. `*` and `?` stop at a slash. */
export function matchesName(reference: Reference, patterns: readonly string[]): boolean {
  if (patterns.length === 0) return true;
  const names = [familiarName(reference.repository), familiarReference(reference)];
  return patterns.some((pattern) => {
    const expression = globExpression(pattern.replace(/^(?:index\.)?docker\.io\/(?:library\/)?/, ''));
    return names.some((name) => expression.test(name));
  });
}

function globExpression(pattern: string): RegExp {
  const source = pattern.replaceAll(/[*?]|[^\w/]/g, (sign) => {
    if (sign === '*') return '[^/]*';
    return sign === '?' ? '[^/]' : `\\${sign}`;
  });
  return new RegExp(`^${source}$`);
}
