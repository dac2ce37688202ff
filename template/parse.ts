import { TemplateError } from './error.ts';

/** An expression of a template: a value, or a function with arguments. */
export type Expression =
  | { kind: 'literal'; value: string | number | boolean | null }
  | { kind: 'field'; of: Expression; path: readonly string[] }
  | { kind: 'dot' }
  | { kind: 'variable'; name: string }
  | { kind: 'call'; name: string; words: readonly Expression[] }
  | { kind: 'apply'; of: Expression; words: readonly Expression[] };

/** A piece of a template. */
export type Node =
  | { kind: 'text'; text: string }
  | { kind: 'print'; value: Expression }
  | { kind: 'assign'; name: string; value: Expression }
  | Control;

export type Control = {
  kind: 'if' | 'with' | 'range';
  /** The variables that are set: one, or two in a range. */
  names: readonly string[];
  value: Expression;
  yes: Node[];
  otherwise: Node[];
};

type Token = { kind: 'text' | 'action'; text: string };
const WORD = /\s*("(?:[^"\\]|\\.)*"|`[^`]*`|\$?[\w]*(?:\.\w+)+|\.|\$\w*|[\w]+|-?\d[\d.]*|[()|,]|:=|=)/y;

/** Reads a template in the language of Go's text/template, in the subset that docker's users write. */
export function parseTemplate(text: string): Node[] {
  const tokens = tokensOf(text);
  const nodes = block(tokens);
  if (tokens.length > 0) throw wrong(`unexpected {{${tokens[0]!.text}}}`);
  return nodes;
}

function wrong(reason: string): TemplateError {
  return new TemplateError(reason);
}

/** `{{-` and `-}}` trim the blanks beside them. */
function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let rest = text;
  let trims = false;
  for (;;) {
    const start = rest.indexOf('{{');
    let before = start < 0 ? rest : rest.slice(0, start);
    if (trims) before = before.trimStart();
    if (start < 0) return before === '' ? tokens : [...tokens, { kind: 'text', text: before }];
    const end = endOfAction(rest, start + 2);
    let action = rest.slice(start + 2, end);
    if (/^-\s/.test(action)) {
      before = before.trimEnd();
      action = action.slice(1);
    }
    trims = /\s-$/.test(action);
    if (trims) action = action.slice(0, -1);
    if (before !== '') tokens.push({ kind: 'text', text: before });
    if (!/^\s*\/\*[^]*\*\/\s*$/.test(action)) tokens.push({ kind: 'action', text: action.trim() });
    rest = rest.slice(end + 2);
  }
}

function endOfAction(text: string, from: number): number {
  const match = /(?:"(?:[^"\\]|\\.)*"|`[^`]*`|(?!\}\})[^"`])*\}\}/y;
  match.lastIndex = from;
  if (match.exec(text) === null) throw wrong('unclosed action');
  return match.lastIndex - 2;
}

function block(tokens: Token[]): Node[] {
  const nodes: Node[] = [];
  for (let token = tokens[0]; token !== undefined; token = tokens[0]) {
    const [keyword = ''] = token.text.split(/\s/, 1);
    if (token.kind === 'action' && (keyword === 'end' || keyword === 'else')) break;
    tokens.shift();
    if (token.kind === 'text') nodes.push({ kind: 'text', text: token.text });
    else if (keyword === 'if' || keyword === 'with' || keyword === 'range')
      nodes.push(control(keyword, token.text, tokens));
    else nodes.push(action(token.text));
  }
  return nodes;
}

function control(keyword: 'if' | 'with' | 'range', text: string, tokens: Token[]): Node {
  const words = wordsOf(text.slice(keyword.length));
  const names = namesOf(words);
  const value = pipeline(words);
  finished(words, text);
  const yes = block(tokens);
  const otherwise: Node[] = [];
  const next = tokens[0]?.text ?? '';
  if (/^else\s+(if|with)\b/.test(next)) {
    tokens.shift();
    const inner = next.replace(/^else\s+/, '');
    otherwise.push(control(inner.startsWith('if') ? 'if' : 'with', inner, tokens));
    return { kind: keyword, names, value, yes, otherwise };
  }
  if (next === 'else') {
    tokens.shift();
    for (const node of block(tokens)) otherwise.push(node);
  }
  if (tokens.shift()?.text !== 'end') throw wrong(`{{${keyword}}} without {{end}}`);
  return { kind: keyword, names, value, yes, otherwise };
}

/** `$value :=` or `$key, $value :=` at the beginning. */
function namesOf(words: string[]): string[] {
  const at = words.indexOf(':=');
  if (at < 0) return [];
  return words.splice(0, at + 1).filter((word) => word.startsWith('$'));
}

function action(text: string): Node {
  const words = wordsOf(text);
  if (words[0]?.startsWith('$') === true && (words[1] === ':=' || words[1] === '=')) {
    const [name] = words.splice(0, 2);
    const value = pipeline(words);
    finished(words, text);
    return { kind: 'assign', name: name!, value };
  }
  const value = pipeline(words);
  finished(words, text);
  return { kind: 'print', value };
}

function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (let at = 0; at < text.trimEnd().length;) {
    WORD.lastIndex = at;
    const match = WORD.exec(text);
    if (match === null) throw wrong(`unexpected "${text.slice(at).trim()}"`);
    words.push(match[1]!);
    at = WORD.lastIndex;
  }
  return words;
}

function finished(words: readonly string[], text: string): void {
  if (words.length > 0) throw wrong(`unexpected "${words[0]}" in {{${text}}}`);
}

/** `a b | c d` is `c d (a b)`. */
function pipeline(words: string[]): Expression {
  let value = application(words);
  while (words[0] === '|') {
    words.shift();
    const next = application(words);
    if (next.kind !== 'call') throw wrong('expected a function after |');
    value = { ...next, words: [...next.words, value] };
  }
  return value;
}

function application(words: string[]): Expression {
  const first = operand(words);
  const rest: Expression[] = [];
  while (words.length > 0 && words[0] !== '|' && words[0] !== ')') rest.push(operand(words));
  if (rest.length === 0) return first;
  if (first.kind === 'call') return { ...first, words: rest };
  if (first.kind !== 'field') throw wrong('expected a function before its arguments');
  return { kind: 'apply', of: first, words: rest };
}

function operand(words: string[]): Expression {
  const word = words.shift();
  if (word === undefined) throw wrong('missing value');
  if (word === '(') {
    const inner = pipeline(words);
    if (words.shift() !== ')') throw wrong('unclosed (');
    return words[0]?.startsWith('.') === true && words[0] !== '.'
      ? { kind: 'field', of: inner, path: words.shift()!.slice(1).split('.') }
      : inner;
  }
  if (word.startsWith('"')) return { kind: 'literal', value: unquoted(word) };
  if (word.startsWith('`')) return { kind: 'literal', value: word.slice(1, -1) };
  if (/^-?\d/.test(word)) return { kind: 'literal', value: Number(word) };
  if (word === 'true' || word === 'false') return { kind: 'literal', value: word === 'true' };
  if (word === 'nil') return { kind: 'literal', value: null };
  if (word === '.') return { kind: 'dot' };
  const [head, ...path] = word.split('.');
  if (head === '') return { kind: 'field', of: { kind: 'dot' }, path };
  if (head!.startsWith('$')) {
    const variable: Expression = { kind: 'variable', name: head! };
    return path.length > 0 ? { kind: 'field', of: variable, path } : variable;
  }
  if (!/^[a-zA-Z]\w*$/.test(word)) throw wrong(`unexpected "${word}"`);
  return { kind: 'call', name: word, words: [] };
}

function unquoted(word: string): string {
  const known: ReadonlyMap<string, string> = new Map(Object.entries({ n: '\n', t: '\t', r: '\r' }));
  return word.slice(1, -1).replace(/\\(.)/g, (_, letter: string) => known.get(letter) ?? letter);
}
