/** `METHOD /path/{name}/**`: method or `*`, literal segments, one-segment parameters, a rest at the end. */
export type Template = Readonly<{ method: string; path: string }>;

const METHOD = /^(?:\*|[A-Z]+)$/;
const SEGMENT = /^(?:\{[^{}/]*\}|[^{}/*?#%]+)$/;

/** The problem of a template as a user wrote it; undefined: none. */
export function templateProblem(text: string, form: 'method' | 'path'): string | undefined {
  const [method, path] = form === 'method' ? splitTemplate(text) : ['*', text];
  const expected = form === 'method' ? '"GET /path/{name}"' : '"/path/{name}"';
  if (!METHOD.test(method) || !path.startsWith('/')) return `${expected} is expected, not "${text}"`;
  const segments = segmentsOf(path);
  const bad = segments.find(
    (segment, index) => !SEGMENT.test(segment) && (segment !== '**' || index < segments.length - 1),
  );
  return bad === undefined
    ? undefined
    : `${expected} is expected; "${bad}" is neither a name, {parameter} nor ** at the end`;
}

export function parseTemplate(text: string): Template {
  const [method, path] = splitTemplate(text);
  return { method, path };
}

function splitTemplate(text: string): [string, string] {
  const space = text.indexOf(' ');
  return space < 0 ? ['', text] : [text.slice(0, space), text.slice(space + 1).trim()];
}

/** Spaces around a segment, and dots behind it. */
const SPACES_AND_DOTS = /(?<=\/)(?:%20)+|(?:%20|\.)+(?=\/|$)/g;

/** The path as servers see it that trim names. */
export function trimmedPath(path: string): string {
  return path.replaceAll(SPACES_AND_DOTS, '');
}

/**
 * The segments of a path for matching: empty ones are dropped, letters put in lower case, `;parameters`, spaces around a
 * segment and dots behind it left out, since some servers do all of that. Counting a request in a wrong place is better
 * than not counting it.
 */
export function segmentsOf(path: string): string[] {
  const lower = path.toLowerCase();
  const plain = lower.includes(';') ? lower.replaceAll(/;[^/]*/g, '') : lower;
  const segments = trimmedPath(plain).split('/');
  return segments[0] === '' && segments.at(-1) !== ''
    ? segments.slice(1)
    : segments.filter((segment) => segment !== '');
}

/** `/search/code.json` is `/search/code` in a format: many frameworks add such suffixes by themselves. */
export function withoutFormat(segment: string): string {
  return segment.replace(/\.[a-z0-9]+$/, '');
}

/** A node in the tree of templates. */
type Node<T> = {
  /** The template up to here: `/repos/{}`. */
  prefix: string;
  literals: Map<string, Node<T>>;
  parameter: Node<T> | undefined;
  /** By method, `*` for any. */
  values: Map<string, T> | undefined;
  /** Values of templates that end here with `**`. */
  rest: Map<string, T> | undefined;
};

/** Path templates, each with a value per method. A literal goes before a parameter, a parameter before a rest. */
export class RouteTable<T> {
  readonly #root: Node<T> = emptyNode('');

  get size(): number {
    return this.#root.literals.size;
  }

  add({ method, path }: Template, value: T): void {
    let node = this.#root;
    for (const segment of segmentsOf(path)) {
      if (segment === '**') {
        node.rest ??= new Map();
        node.rest.set(method, value);
        return;
      }
      node = childOf(node, segment);
    }
    node.values ??= new Map();
    node.values.set(method, value);
  }

  find(method: string, segments: readonly string[]): T | undefined {
    return find(this.#root, method, segments, 0);
  }

  /** How far the templates know this path: the longest beginning of one that fits. */
  prefixOf(segments: readonly string[]): string {
    let node = this.#root;
    for (const [index, segment] of segments.entries()) {
      const next = literalOf(node, segment, index === segments.length - 1) ?? node.parameter;
      if (next === undefined) break;
      node = next;
    }
    return node.prefix;
  }
}

function emptyNode<T>(prefix: string): Node<T> {
  return { prefix, literals: new Map(), parameter: undefined, values: undefined, rest: undefined };
}

function childOf<T>(node: Node<T>, segment: string): Node<T> {
  if (segment.startsWith('{')) {
    node.parameter ??= emptyNode(`${node.prefix}/{}`);
    return node.parameter;
  }
  const known = node.literals.get(segment);
  if (known !== undefined) return known;
  const added = emptyNode<T>(`${node.prefix}/${segment}`);
  node.literals.set(segment, added);
  return added;
}

/** Looks at each node of the tree at most once, so the templates bound the work, not the request. */
function find<T>(node: Node<T>, method: string, segments: readonly string[], index: number): T | undefined {
  const segment = segments[index];
  if (segment === undefined) {
    const found = of(node.values, method);
    return found ?? of(node.rest, method);
  }
  const literal = literalOf(node, segment, index === segments.length - 1);
  const byLiteral = literal === undefined ? undefined : find(literal, method, segments, index + 1);
  if (byLiteral !== undefined) return byLiteral;
  const byParameter = node.parameter === undefined ? undefined : find(node.parameter, method, segments, index + 1);
  return byParameter ?? of(node.rest, method);
}

function literalOf<T>(node: Node<T>, segment: string, isLast: boolean): Node<T> | undefined {
  const literal = node.literals.get(segment);
  return literal === undefined && isLast && segment.includes('.') ? node.literals.get(withoutFormat(segment)) : literal;
}

/** Values of GET count for HEAD too. */
function of<T>(values: Map<string, T> | undefined, method: string): T | undefined {
  if (values === undefined) return undefined;
  return values.get(method) ?? (method === 'HEAD' ? values.get('GET') : undefined) ?? values.get('*');
}
