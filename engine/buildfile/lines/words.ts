/** The keyword in lower case and as written, the flags before the arguments, and the arguments as written. */
export type Command = Readonly<{ keyword: string; word: string; flags: readonly string[]; rest: string }>;

const BLANK = /[\t\v\f\r ]+/;

/** Splits an instruction's line. */
export function splitCommand(line: string): Command {
  const [, word = '', after = ''] = /^([^\t\v\f\r ]+)(?:[\t\v\f\r ]+([^]*))?$/.exec(line.trim()) ?? [];
  const { flags, rest } = splitFlags(after);
  return { keyword: word.toLowerCase(), word, flags, rest: rest.trim() };
}

/** At blanks, as docker splits paths and ports: a word may be empty at the end only. */
export function splitAtBlanks(text: string): string[] {
  return text === '' ? [] : text.split(BLANK);
}

/** At the first blank: the old form `NAME the rest`. */
export function splitAtFirstBlank(text: string): [string, string] | undefined {
  const found = BLANK.exec(text);
  return found === null ? undefined : [text.slice(0, found.index), text.slice(found.index + found[0].length)];
}

/**
 * Splits at blanks outside of quotes. Quotes and escape characters stay, because they matter when variables are
 * expanded later.
 */
export function splitWords(text: string, escape: string): string[] {
  const words: string[] = [];
  let word = '';
  let quote = '';
  const signs = Array.from(text);
  for (let at = 0; at < signs.length; at += 1) {
    const sign = signs[at]!;
    if (sign === escape && quote !== "'") {
      if (at + 1 === signs.length) break; // an escape character at the very end is dropped
      word += sign + signs[at + 1]!;
      at += 1;
    } else if (quote === '' && /\s/u.test(sign)) {
      if (word !== '') words.push(word);
      word = '';
    } else {
      if (quote === '' && (sign === '"' || sign === "'")) quote = sign;
      else if (sign === quote) quote = '';
      word += sign;
    }
  }
  return word === '' ? words : [...words, word];
}

/** The words in front that begin with `--`, without their quotes; a lone `--` ends them. */
function splitFlags(text: string): { flags: string[]; rest: string } {
  const flags: string[] = [];
  let at = 0;
  for (;;) {
    while (at < text.length && /\s/u.test(text[at]!)) at += 1;
    if (!text.startsWith('--', at)) return { flags, rest: text.slice(at) };
    const { word, end, isEmptyQuoted } = flagAt(text, at);
    at = end;
    if (word === '--') return { flags, rest: text.slice(at) };
    if (word !== '' || isEmptyQuoted) flags.push(word);
  }
}

function flagAt(text: string, start: number): { word: string; end: number; isEmptyQuoted: boolean } {
  let word = '';
  let quote = '';
  let isEmptyQuoted = false;
  let at = start;
  for (; at < text.length; at += 1) {
    const sign = text[at]!;
    if (sign === '\\') {
      at += 1;
      word += text[at] ?? '';
    } else if (quote !== '') {
      if (sign === quote) quote = '';
      else word += sign;
    } else if (/\s/u.test(sign)) {
      break;
    } else if (sign === '"' || sign === "'") {
      quote = sign;
      isEmptyQuoted = true;
    } else {
      word += sign;
    }
  }
  return { word, end: Math.min(at, text.length), isEmptyQuoted };
}
