import { useEffect, useReducer } from 'preact/hooks';

/** A value that components follow. */
export class Store<T> {
  #value: T;
  readonly #listeners = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const listener of this.#listeners) listener();
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

/** The value of a store; the component is drawn anew with each change. */
export function useStore<T>(store: Store<T>): T {
  const [, redraw] = useReducer<number, undefined>((count) => count + 1, 0);
  const { value } = store;
  useEffect(() => {
    if (!Object.is(store.value, value)) redraw(undefined); // changed between drawing and now
    return store.subscribe(() => redraw(undefined));
  }, [store]);
  return value;
}
