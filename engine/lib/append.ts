/** Appends items to a list. Spread into the arguments of `push`, a long list overflows the stack. */
export function append<T>(list: T[], items: Iterable<T>): void {
  for (const item of items) list.push(item);
}
