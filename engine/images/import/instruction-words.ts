import { EngineError } from '../../lib/errors.ts';

/** Splits at blanks outside of quotes; keeps quotes and backslashes for `expandWord`. */
export function splitWords(text: string): string[] {
  const words: string[] = [];
  let word = '';
  let quote = '';
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at]!;
    if (sign === '\\' && quote !== "'" && at + 1 < text.length) {
      word += sign + text[at + 1]!;
      at += 1;
    } else if (quote === '' && /\s/.test(sign)) {
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

/** Removes quotes and backslashes, and expands `$name`, `${name}`, `${name:-default}` and `${name:+other}`. */
export function expandWord(word: string, env: readonly string[]): string {
  let result = '';
  let quote = '';
  for (let at = 0; at < word.length; at += 1) {
    const sign = word[at]!;
    const next = word[at + 1];
    if (sign === '\\' && quote !== "'" && next !== undefined) {
      // Within double quotes a backslash before most characters is literal.
      result += quote === '"' && !'"$\\'.includes(next) ? sign + next : next;
      at += 1;
    } else if (sign === quote) {
      quote = '';
    } else if (quote === '' && (sign === '"' || sign === "'")) {
      quote = sign;
    } else if (sign === '$' && quote !== "'") {
      const { value, length } = variableAt(word.slice(at), env);
      result += value;
      at += length - 1;
    } else {
      result += sign;
    }
  }
  if (quote !== '') throw new EngineError('invalid', `unexpected end of statement while looking for matching ${quote}`);
  return result;
}

function variableAt(text: string, env: readonly string[]): { value: string; length: number } {
  const plain = /^\$([A-Za-z_]\w*|[0-9@*#])/.exec(text);
  if (plain !== null) return { value: valueOf(plain[1]!, env) ?? '', length: plain[0].length };
  const braced = /^\$\{([A-Za-z_]\w*|[0-9@*#])(?::([-+])([^}]*))?\}/.exec(text);
  if (braced === null) {
    if (text.startsWith('${')) throw new EngineError('invalid', `unsupported substitution in ${JSON.stringify(text)}`);
    return { value: '$', length: 1 };
  }
  const [all, name, operator, other = ''] = braced;
  const value = valueOf(name!, env) ?? '';
  const chosen = operator === '-' ? value || other : operator === '+' ? value && other : value;
  return { value: chosen === other && operator !== undefined ? expandWord(other, env) : chosen, length: all.length };
}

function valueOf(name: string, env: readonly string[]): string | undefined {
  return env.find((entry) => entry.startsWith(`${name}=`))?.slice(name.length + 1);
}
