import { readable, type BytePath } from '../../host/files/openat.ts';
import { badArchive } from './tar-header.ts';

/**
 * A name of the archive relative to its root, cleaned as its text stands: an absolute name counts from the root, and its
 * `..` ends there. Throws for a relative name that leads out.
 */
export function innerPath(path: BytePath, what: string): BytePath {
  const parts = innerParts(path);
  if (parts === undefined) throw badArchive(`${what} ${quotePath(path)} leads out of the root`);
  return parts.join('/');
}

/** The parts of `innerPath`; undefined for a name that leads out. */
export function innerParts(path: BytePath): BytePath[] | undefined {
  const parts: BytePath[] = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') parts.push(part);
    else if (parts.pop() === undefined && !path.startsWith('/')) return undefined;
  }
  return parts;
}

/** As an error message shows it. */
export function quotePath(path: BytePath): string {
  return JSON.stringify(readable(path));
}
