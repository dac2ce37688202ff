/**
 * Reads only the outermost level of JSON, without a tree and without recursion: no input takes longer than its
 * length, and what parsers disagree on is not taken for certain.
 */

/** The values of an object as they are written, by their keys in lower case. Undefined: not certain. */
export function objectIn(json: string): Map<string, string> | undefined {
  const values = new Map<string, string>();
  let at = skipSpace(json, 0);
  if (json[at] !== '{') return undefined;
  at = skipSpace(json, at + 1);
  while (json[at] === '"') {
    const keyEnd = endOfString(json, at);
    // In lower case: Go's parser takes `Query` for `query`. Duplicate keys: parsers disagree on which one counts.
    const key = stringIn(json.slice(at, keyEnd))?.toLowerCase();
    at = skipSpace(json, keyEnd);
    if (key === undefined || values.has(key) || json[at] !== ':') return undefined;
    at = skipSpace(json, at + 1);
    const end = endOfValue(json, at);
    if (end < 0) return undefined;
    values.set(key, json.slice(at, end));
    at = skipSpace(json, end);
    if (json[at] !== ',') break;
    at = skipSpace(json, at + 1);
    if (json[at] !== '"') return undefined;
  }
  return json[at] === '}' && skipSpace(json, at + 1) === json.length ? values : undefined;
}

/** The values of a list as they are written. Undefined: not certain. */
export function itemsIn(json: string): string[] | undefined {
  const items: string[] = [];
  let at = skipSpace(json, 0);
  if (json[at] !== '[') return undefined;
  do {
    at = skipSpace(json, at + 1);
    const end = endOfValue(json, at);
    if (end < 0) return undefined;
    items.push(json.slice(at, end));
    at = skipSpace(json, end);
  } while (json[at] === ',');
  return json[at] === ']' && skipSpace(json, at + 1) === json.length ? items : undefined;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (code !== 32 && code !== 10 && code !== 13 && code !== 9) break;
    at += 1;
  }
  return at;
}

/** The place after the closing quote; the end of the text when there is none. */
function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 92) at += 1;
    else if (code === 34) return at + 1;
  }
  return text.length;
}

/** The text of a JSON string; undefined for anything else. */
export function stringIn(json: string): string | undefined {
  if (!json.startsWith('"')) return undefined;
  try {
    const value: unknown = JSON.parse(json);
    return typeof value === 'string' ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The place after a JSON value; what is inside is only skipped. -1: it does not end. */
function endOfValue(json: string, from: number): number {
  const first = json[from];
  if (first === '"') {
    const end = endOfString(json, from);
    return json[end - 1] === '"' && end > from + 1 ? end : -1;
  }
  if (first !== '{' && first !== '[') {
    let at = from;
    while (at < json.length && /[-+.\w]/.test(json[at]!)) at += 1;
    return at > from ? at : -1;
  }
  let depth = 0;
  for (let at = from; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === 34) at = endOfString(json, at) - 1;
    else if (code === 123 || code === 91) depth += 1;
    else if (code === 125 || code === 93) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return -1;
}
