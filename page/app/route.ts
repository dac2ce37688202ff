import { Store } from '../parts/store.ts';

/** `#/containers/ID/logs` as `['containers', 'ID', 'logs']`. */
export const route = new Store<readonly string[]>(read());

export function followRoute(): void {
  addEventListener('hashchange', () => route.set(read()));
}

export function hrefOf(...parts: readonly string[]): string {
  return `#/${parts.map(encodeURIComponent).join('/')}`;
}

export function go(...parts: readonly string[]): void {
  location.hash = hrefOf(...parts);
}

function read(): readonly string[] {
  const parts = location.hash
    .replace(/^#\/?/, '')
    .split('/')
    .filter((part) => part !== '');
  return parts.length === 0 ? ['containers'] : parts.map(decode);
}

/** A broken escape stays as it is. */
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch (error) {
    if (error instanceof URIError) return part;
    throw error;
  }
}
