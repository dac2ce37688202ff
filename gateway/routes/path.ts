/** A request target in the one spelling that is both judged and passed on. */
export type Target = Readonly<{
  /** Begins with a slash; neither `//` nor dot segments; escapes only where they are needed. */
  path: string;
  /** With its question mark, or empty. */
  query: string;
  /** The path as read by upstreams that take `%2F` for a slash, `%3B` for a `;`, or drop `;parameters`; only where it contains these. */
  readings?: readonly string[];
  /** Authority of a target in the absolute form: it takes precedence over the Host header. */
  authority?: string;
}>;

/** Nothing to do: plain characters without `;`, no empty segment, none that begins with a dot. */
const PLAIN = /^(?:\/[A-Za-z0-9_~!$&'()*+,=:@-][A-Za-z0-9._~!$&'()*+,=:@-]*)*\/?$/;
const UNRESERVED = /[A-Za-z0-9._~-]/;
/** Characters of a query: no control characters, no spaces, nothing that is not ASCII. */
const QUERY = /^[\x21-\x22\x24-\x7e]*$/;

/**
 * Brings a request target into one spelling, or says why it is refused.
 *
 * The category is chosen by the path, so gateway and upstream must not read it differently: what some servers read as
 * something else (a backslash for a slash, a NUL for the end) is refused, the rest is normalised before it is passed on.
 */
export function canonicalTarget(url: string): Target | Readonly<{ refused: string }> {
  const mark = url.indexOf('?');
  const raw = mark < 0 ? url : url.slice(0, mark);
  const query = mark < 0 ? '' : url.slice(mark);
  if (!QUERY.test(query)) return { refused: 'The query contains a character that must be percent-encoded.' };
  if (PLAIN.test(raw)) return { path: raw === '' ? '/' : raw, query };
  const path = canonicalPath(raw);
  if (typeof path !== 'string') return path;
  const readings: string[] = [];
  const withSlashes = path.includes('%2F') ? [path, path.replaceAll('%2F', '/')] : [path];
  const decoded = withSlashes.map((one) => one.replaceAll('%3B', ';'));
  for (const text of new Set([...withSlashes, ...decoded, ...decoded.map(withoutParameters)])) {
    const reading = canonicalPath(text);
    if (typeof reading !== 'string') return reading;
    if (reading !== path) readings.push(reading);
  }
  return readings.length === 0 ? { path, query } : { path, query, readings };
}

function withoutParameters(path: string): string {
  return path.replaceAll(/;[^/]*/g, '');
}

function canonicalPath(raw: string): string | Readonly<{ refused: string }> {
  if (!raw.startsWith('/')) return { refused: 'The path must begin with a slash.' };
  const kept: string[] = [];
  const segments = raw.split('/');
  let last = '';
  for (const segment of segments) {
    const decoded = canonicalSegment(segment);
    if (decoded === undefined) return { refused: 'The path contains a character or an escape that is not allowed.' };
    last = decoded;
    if (decoded === '' || decoded === '.') continue;
    if (decoded !== '..') kept.push(decoded);
    else if (kept.pop() === undefined) return { refused: 'The path leaves the root.' };
  }
  const folder = last === '' || last === '.' || last === '..';
  return kept.length === 0 ? '/' : `/${kept.join('/')}${folder ? '/' : ''}`;
}

/** Unreserved characters are written plainly, other escapes in upper case. Undefined: refused. */
function canonicalSegment(segment: string): string | undefined {
  let text = '';
  for (let at = 0; at < segment.length; at += 1) {
    const character = segment[at]!;
    const code = segment.charCodeAt(at);
    if (code <= 32 || code >= 127 || character === '\\' || character === '#') return undefined;
    if (character !== '%') {
      text += character;
      continue;
    }
    const digits = segment.slice(at + 1, at + 3);
    if (!/^[0-9A-Fa-f]{2}$/.test(digits)) return undefined;
    const byte = Number.parseInt(digits, 16);
    if (byte < 32 || byte === 127 || byte === 0x5c) return undefined;
    const decoded = String.fromCharCode(byte);
    text += UNRESERVED.test(decoded) ? decoded : `%${digits.toUpperCase()}`;
    at += 2;
  }
  return text;
}
