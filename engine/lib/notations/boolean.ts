const VALUES = new Map([
  ...['1', 't', 'T', 'true', 'True', 'TRUE'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'false', 'False', 'FALSE'].map((text) => [text, false] as const),
]);

/** A boolean in Go's notation; undefined for any other text. */
export function parseBoolean(text: string): boolean | undefined {
  return VALUES.get(text);
}

/** Go's reason to refuse `text`. */
export function booleanRefusal(text: string): string {
  return `strconv.ParseBool: parsing ${JSON.stringify(text)}: invalid syntax`;
}
