import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Calls that are used to put a list into the arguments, each of which takes room on the stack. */
const CALL = /\.(?:push|unshift|splice)\(|\bMath\.(?:max|min)\(|\bString\.from(?:CharCode|CodePoint)\(/g;
const OPENING = '([{';
const CLOSING = ')]}';

/** The lines, as `file:line`, on which a call takes a list of any length as its arguments. */
export function listSpreads(root: string, files: readonly string[]): string[] {
  return files.flatMap((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    return Array.from(text.matchAll(CALL))
      .filter(({ 0: call, index }) => spreads(text, index + call.length))
      .map(({ index }) => `${file}:${text.slice(0, index).split('\n').length}`);
  });
}

/** Whether the arguments from here on contain a spread that is not in a list or an object of its own. */
function spreads(text: string, start: number): boolean {
  let depth = 1;
  for (let at = start; at < text.length && depth > 0; at += 1) {
    if (depth === 1 && text.startsWith('...', at)) return true;
    if (OPENING.includes(text[at]!)) depth += 1;
    if (CLOSING.includes(text[at]!)) depth -= 1;
  }
  return false;
}
