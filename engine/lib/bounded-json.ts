const MAX_DEPTH = 100;
const MAX_VALUES = 100_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING: ReadonlySet<number> = new Set([0x5b, 0x7b]);
const CLOSING: ReadonlySet<number> = new Set([0x5d, 0x7d]);

/** JSON that is nested too deeply, or has too many values; the message is about "it". */
export class UnboundedJsonError extends Error {}

/**
 * Parses JSON from outside. A few megabytes of brackets cost JSON.parse seconds and hundreds of megabytes, so nesting and number
 * of values are limited beforehand.
 *
 * Throws `SyntaxError` for anything but JSON, and `UnboundedJsonError`. The caller limits the length.
 */
export function parseBoundedJson(text: string, { maxDepth = MAX_DEPTH, maxValues = MAX_VALUES } = {}): unknown {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at);
    } else if (OPENING.has(code)) {
      depth += 1;
      values += 1;
      if (depth > maxDepth) throw new UnboundedJsonError(`it is nested deeper than ${maxDepth} levels`);
    } else if (CLOSING.has(code)) {
      depth -= 1;
    } else if (code === COMMA) {
      values += 1;
    }
    if (values > maxValues) throw new UnboundedJsonError(`it has more than ${maxValues} values`);
  }
  return JSON.parse(text);
}

/** The closing quote of the string that begins at `start`; the end of the text if there is none. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end - 1;
    while (text.charCodeAt(before) === BACKSLASH) before -= 1;
    if ((end - before) % 2 === 1) return end; // an even number of backslashes: the quote is not escaped
  }
  return text.length;
}
