type NonEmpty<T> = { [K in keyof T]?: NonNullable<T[K]> };

/** Returns the fields without missing, null, empty and false values. */
export function omitEmpty<T extends object>(fields: T): NonEmpty<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => hasValue(value))) as NonEmpty<T>;
}

function hasValue(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && value !== false;
}
