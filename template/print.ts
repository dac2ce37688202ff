/** A value as Go prints it: `[a b]`, `map[k:v]`, and `<no value>` for none. */
export function goText(value: unknown): string {
  if (value === undefined) return '<no value>';
  if (value === null) return '<nil>';
  if (Array.isArray(value)) return `[${value.map(goText).join(' ')}]`;
  if (typeof value === 'object') {
    const pairs = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
    return `map[${pairs.map(([key, each]) => `${key}:${goText(each)}`).join(' ')}]`;
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}
