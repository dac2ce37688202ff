import { editDistance } from '@gantry/template/edit-distance.ts';

/** Changes of single characters that a mistyped word may have. */
const MAX_DISTANCE = 2;

type How = Readonly<{ ignoresCase?: boolean }>;

/** The option that a mistyped word comes closest to; undefined if none is close, or if the word is one of them. */
export function suggestionFor(word: string, options: readonly string[], how: How = {}): string | undefined {
  const folded = (text: string): string => (how.ignoresCase === true ? text.toLowerCase() : text);
  let best: string | undefined;
  let least = MAX_DISTANCE + 1;
  for (const option of options) {
    const distance = editDistance(folded(word), folded(option), MAX_DISTANCE);
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

function inCaseOf(text: string, like: string): string {
  if (like === like.toLowerCase()) return text.toLowerCase();
  return like === like.toUpperCase() ? text.toUpperCase() : text;
}
