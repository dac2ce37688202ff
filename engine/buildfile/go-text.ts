const ESCAPES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    '\x07': '\\a',
    '\b': '\\b',
    '\f': '\\f',
    '\n': '\\n',
    '\r': '\\r',
    '\t': '\\t',
    '\v': '\\v',
    '\\': '\\\\',
  }),
);

/** A text in double quotes, as Go's `%q` writes it. */
export function quote(text: string): string {
  return `"${Array.from(text)
    .map((sign) => (sign === '"' ? '\\"' : escapeSign(sign)))
    .join('')}"`;
}

/** A list of texts as `%q` writes it: `["a" "b"]`. */
export function quotedList(words: readonly string[] | null): string {
  return `[${(words ?? []).map(quote).join(' ')}]`;
}

/** A number as `%q` writes it: as the character that it stands for. */
export function quotedNumber(value: number): string {
  const sign = String.fromCodePoint(value);
  return `'${sign === "'" ? "\\'" : escapeSign(sign)}'`;
}

function escapeSign(sign: string): string {
  const known = ESCAPES.get(sign);
  if (known !== undefined) return known;
  if (sign === ' ' || !/[\p{C}\p{Z}]/u.test(sign)) return sign;
  const code = sign.codePointAt(0)!;
  if (code < 0x80) return `\\x${hex(code, 2)}`;
  return code < 0x10000 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}
