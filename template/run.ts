import { TemplateError } from './error.ts';
import { FUNCTIONS, isTrue, type TemplateFunction } from './functions.ts';
import { parseTemplate, type Control, type Expression, type Node } from './parse.ts';
import { goText } from './print.ts';

type Scope = {
  readonly dot: unknown;
  readonly variables: Map<string, unknown>;
  readonly functions: ReadonlyMap<string, TemplateFunction>;
};

/** Compiles a template into a function from value to text. `shown` is applied to text from the value; `functions` add to docker's. */
export function compileTemplate(
  text: string,
  shown: (text: string) => string = (same) => same,
  functions: ReadonlyMap<string, TemplateFunction> = FUNCTIONS,
): (value: unknown) => string {
  const nodes = parseTemplate(text);
  return (value) => {
    const pieces: string[] = [];
    run(nodes, { dot: value, variables: new Map([['$', value]]), functions }, (node, piece) =>
      pieces.push(node === 'text' ? piece : shown(piece)),
    );
    return pieces.join('');
  };
}

type Out = (node: 'text' | 'value', piece: string) => void;

function run(nodes: readonly Node[], scope: Scope, out: Out): void {
  for (const node of nodes) {
    switch (node.kind) {
      case 'text':
        out('text', node.text);
        break;
      case 'print':
        out('value', goText(printable(node.value, scope)));
        break;
      case 'assign':
        scope.variables.set(node.name, evaluate(node.value, scope));
        break;
      case 'if':
      case 'with':
        condition(node, scope, out);
        break;
      case 'range':
        range(node, scope, out);
        break;
    }
  }
}

function condition({ kind, names, value: expression, yes, otherwise }: Control, scope: Scope, out: Out): void {
  const value = evaluate(expression, scope);
  const inner: Scope = {
    ...scope,
    dot: kind === 'with' ? value : scope.dot,
    variables: new Map([...scope.variables, ...names.map((name): [string, unknown] => [name, value])]),
  };
  if (isTrue(value)) run(yes, inner, out);
  else run(otherwise, { ...inner, dot: scope.dot }, out);
}

function range(node: Control, scope: Scope, out: Out): void {
  const entries = entriesOf(evaluate(node.value, scope));
  if (entries.length === 0) run(node.otherwise, scope, out);
  for (const [key, value] of entries) {
    const variables = new Map(scope.variables);
    const [first, second] = node.names;
    if (second !== undefined) variables.set(first!, key).set(second, value);
    else if (first !== undefined) variables.set(first, value);
    run(node.yes, { ...scope, dot: value, variables }, out);
  }
}

/** A map is iterated in the order of its keys, as in Go. */
function entriesOf(value: unknown): [unknown, unknown][] {
  if (Array.isArray(value)) return value.map((each: unknown, index) => [index, each]);
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** An unknown field is false in a condition, but an error when it is printed. */
function printable(expression: Expression, scope: Scope): unknown {
  const value = evaluate(expression, scope);
  if (value === undefined && expression.kind === 'field' && /^[A-Z]/.test(expression.path.at(-1)!)) {
    throw new TemplateError(`unknown field .${expression.path.join('.')}`);
  }
  return value;
}

function evaluate(expression: Expression, scope: Scope): unknown {
  switch (expression.kind) {
    case 'literal':
      return expression.value;
    case 'dot':
      return scope.dot;
    case 'variable':
      if (!scope.variables.has(expression.name)) throw new TemplateError(`undefined variable "${expression.name}"`);
      return scope.variables.get(expression.name);
    case 'field':
      return expression.path.reduce(fieldOf, evaluate(expression.of, scope));
    case 'apply': {
      const method = evaluate(expression.of, scope);
      if (typeof method !== 'function') throw new TemplateError('a value is used as a function');
      return (method as (...words: unknown[]) => unknown)(...expression.words.map((word) => evaluate(word, scope)));
    }
    case 'call':
      return call(expression, scope);
  }
}

function call({ name, words }: Extract<Expression, { kind: 'call' }>, scope: Scope): unknown {
  // The two functions that stop at the first argument that decides.
  if (name === 'and' || name === 'or') {
    let last: unknown;
    for (const word of words) {
      last = evaluate(word, scope);
      if (isTrue(last) === (name === 'or')) return last;
    }
    return last;
  }
  const known = scope.functions.get(name) ?? FUNCTIONS.get(name);
  if (known === undefined) throw new TemplateError(`function "${name}" not defined`);
  return known(...words.map((word) => evaluate(word, scope)));
}

function fieldOf(value: unknown, name: string): unknown {
  if (value === null || value === undefined) return undefined;
  return typeof value === 'object' && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}
