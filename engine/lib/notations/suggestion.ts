/** Changes of single characters that a mistyped word may have. */
const MAX_DISTANCE = 2;

type How = Readonly<{ ignoresCase?: boolean }>;

/** The option that a mistyped word comes closest to; undefined if none is close, or if the word is one of them. */
export function suggestionFor(word: string, options: readonly string[], how: How = {}): string | undefined {
  const folded = (text: string): string => (how.ignoresCase === true ? text.toLowerCase() : text);
  let best: string | undefined;
  let least = MAX_DISTANCE + 1;
  for (const option of options) {
    const distance = distanceBetween(folded(word), folded(option));
    if (distance === 0) return undefined;
    if (distance >= least) continue;
    least = distance;
    best = option;
  }
  return best === undefined || how.ignoresCase !== true ? best : inCaseOf(best, word);
}

/** A message with the suggestion behind it, if there is one. */
export function withSuggestion(message: string, word: string, options: readonly string[], how?: How): string {
  const suggestion = suggestionFor(word, options, how);
  return suggestion === undefined ? message : `${message} (did you mean ${suggestion}?)`;
}

/** Levenshtein's distance; above `MAX_DISTANCE` any larger number. */
function distanceBetween(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > MAX_DISTANCE) return MAX_DISTANCE + 1;
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let at = 0; at < a.length; at += 1) {
    const next = [at + 1];
    for (let other = 0; other < b.length; other += 1) {
      const replaced = row[other]! + (a[at] === b[other] ? 0 : 1);
      next.push(Math.min(replaced, row[other + 1]! + 1, next[other]! + 1));
    }
    if (next.every((distance) => distance > MAX_DISTANCE)) return MAX_DISTANCE + 1;
    row = next;
  }
  return row.at(-1)!;
}

function inCaseOf(text: string, like: string): string {
  if (like === like.toLowerCase()) return text.toLowerCase();
  return like === like.toUpperCase() ? text.toUpperCase() : text;
}
