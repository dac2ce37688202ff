import { isUtf8 } from 'node:buffer';

import { itemsIn, objectIn, stringIn } from './outermost-json.ts';

/**
 * Does a GraphQL request contain a mutation? One pass over the body, without a tree and without recursion, so that no
 * input takes longer than its length.
 *
 * Only what is certainly a query is called one. Anything unreadable is a mutation: it costs more, so being unreadable
 * gains nothing.
 */
export function graphqlKind(contentType: string | undefined, body: Buffer): 'query' | 'mutation' {
  const asked = requestsOf(contentType, body);
  const [only] = asked?.requests ?? [];
  if (only === undefined || asked?.isBatch === true) return 'mutation';
  return documentKind(only.query, only.operationName);
}

function isUtf8Text(body: Buffer): boolean {
  return isUtf8(body) && !body.includes(0);
}

export type GraphqlRequest = { query: string; operationName: string | undefined };

/** The keys of a request; with another one (a persisted document's) the upstream may run something else than the query. */
const KEYS = new Set(['query', 'operationname', 'variables', 'extensions']);

/** Some servers read a body as UTF-7 where that is asked for, in which plain letters can spell a quotation mark. */
const UTF8_CHARSET = /^charset\s*=\s*"?utf-?8"?$/;

type Asked = Readonly<{ requests: GraphqlRequest[]; isBatch: boolean }>;

/** The requests of a body, one or a batch. Undefined: not certain. */
export function requestsOf(contentType: string | undefined, body: Buffer): Asked | undefined {
  // A body in another encoding (UTF-16, a byte order mark) could be read differently by the upstream.
  if (body.length === 0 || body[0] === 0xef || !isUtf8Text(body)) return undefined;
  const [type, ...parameters] = contentType?.split(';').map((part) => part.trim().toLowerCase()) ?? [];
  if (parameters.some((one) => one.startsWith('charset') && !UTF8_CHARSET.test(one))) return undefined;
  const text = body.toString('utf8');
  if (type === 'application/graphql') return { requests: [{ query: text, operationName: undefined }], isBatch: false };
  if (type !== 'application/json') return undefined;
  const items = itemsIn(text);
  const found = (items ?? [text]).map(requestIn);
  const requests = found.filter((request) => request !== undefined);
  return requests.length === found.length ? { requests, isBatch: items !== undefined } : undefined;
}

/** The request in a JSON object. Undefined: not certain. */
export function requestIn(json: string): GraphqlRequest | undefined {
  const values = objectIn(json);
  if (values === undefined || !values.keys().every((key) => KEYS.has(key))) return undefined;
  const query = stringIn(values.get('query') ?? '');
  const name = values.get('operationname') ?? 'null';
  const operationName = name === 'null' ? undefined : stringIn(name);
  const extensions = values.get('extensions') ?? '';
  if (query === undefined || (name !== 'null' && operationName === undefined)) return undefined;
  // A persisted query is run by its hash; a backslash can spell the key in another way.
  if (extensions.includes('\\') || extensions.toLowerCase().includes('persisted')) return undefined;
  return { query, operationName };
}

const NAME = /[_A-Za-z][_0-9A-Za-z]*/y;

/** The kinds of a document's operations, and of the one that is asked for. */
function documentKind(source: string, operationName: string | undefined): 'query' | 'mutation' {
  const operations: { type: string; name: string }[] = [];
  let depth = 0;
  let expectsDefinition = true;
  let at = 0;
  while (at < source.length) {
    const code = source.charCodeAt(at);
    if (isIgnored(code)) at += 1;
    else if (code === 35) at = endOfLine(source, at);
    else if (code === 34) {
      at = endOfGraphqlString(source, at);
      if (at < 0) return 'mutation';
    } else if (code === 123 || code === 40 || code === 91) {
      if (depth === 0 && expectsDefinition) {
        if (code !== 123) return 'mutation';
        operations.push({ type: 'query', name: '' });
        expectsDefinition = false;
      }
      depth += 1;
      at += 1;
    } else if (code === 125 || code === 41 || code === 93) {
      depth -= 1;
      if (depth < 0) return 'mutation';
      if (depth === 0 && code === 125) expectsDefinition = true;
      at += 1;
    } else {
      NAME.lastIndex = at;
      const word = NAME.exec(source)?.[0];
      if (word === undefined) {
        if (depth === 0 && expectsDefinition) return 'mutation';
        at += 1;
      } else {
        at += word.length;
        if (depth === 0 && expectsDefinition) {
          expectsDefinition = false;
          if (word !== 'fragment') operations.push({ type: word, name: nameAfter(source, at) });
        }
      }
    }
  }
  if (depth !== 0 || !expectsDefinition) return 'mutation';
  return chosenKind(operations, operationName);
}

function chosenKind(
  operations: readonly { type: string; name: string }[],
  name: string | undefined,
): 'query' | 'mutation' {
  if (operations.length === 0) return 'mutation';
  if (operations.every(({ type }) => type === 'query')) return 'query';
  const chosen = operations.filter((operation) => operation.name === name && name !== '');
  return chosen.length === 1 && chosen[0]?.type === 'query' ? 'query' : 'mutation';
}

/** Spaces, line ends, commas. */
function isIgnored(code: number): boolean {
  return code === 32 || code === 44 || code === 10 || code === 13 || code === 9;
}

function endOfLine(source: string, from: number): number {
  let at = from;
  while (at < source.length && source[at] !== '\n' && source[at] !== '\r') at += 1;
  return at;
}

/** The place after a string or block string; -1: it does not end. */
function endOfGraphqlString(source: string, from: number): number {
  if (source.startsWith('"""', from)) {
    let at = source.indexOf('"""', from + 3);
    while (at >= 0 && source[at - 1] === '\\') at = source.indexOf('"""', at + 3);
    return at < 0 ? -1 : at + 3;
  }
  for (let at = from + 1; at < source.length; at += 1) {
    const character = source[at];
    if (character === '\\') at += 1;
    else if (character === '"') return at + 1;
    else if (character === '\n' || character === '\r') return -1;
  }
  return -1;
}

function nameAfter(source: string, from: number): string {
  let at = from;
  while (at < source.length) {
    if (isIgnored(source.charCodeAt(at))) at += 1;
    else if (source[at] === '#') at = endOfLine(source, at);
    else break;
  }
  NAME.lastIndex = at;
  return NAME.exec(source)?.[0] ?? '';
}
