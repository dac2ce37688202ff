type NonEmpty<T> = { [K in keyof T]?: NonNullable<T[K]> };

/** Returns the fields without missing, null, empty and false values. */
export function omitEmpty<T extends object>(fields: T): NonEmpty<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => hasValue(value))) as NonEmpty<T>;
}

function hasValue(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== false;
}

/** Returns the fields without missing, null, zero and empty values, texts, lists and maps: Go's `omitempty`. */
export function filled<T extends object>(fields: T): NonEmpty<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value))) as NonEmpty<T>;
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === 0) return true;
  return typeof value !== 'number' && typeof value !== 'boolean' && Object.keys(value).length === 0;
}
