/** The bytes that a percent-encoded part of an address stands for; undefined if an escape in it is broken, such as `%zz`. */
export function decodePercent(text: string): Buffer | undefined {
  if (/%(?![0-9a-f]{2})/i.test(text)) return undefined;
  const bytes = Buffer.from(text).toString('latin1');
  const decoded = bytes.replaceAll(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(decoded, 'latin1');
}
