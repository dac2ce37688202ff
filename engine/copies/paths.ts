import type { BytePath } from '../host/files/openat.ts';

/** A client's path, as dockerd reads it: absolute, cleaned, with the mark of a folder kept. */
export type InnerPath = Readonly<{
  /** All parts, without `.` and `..`. */
  parts: readonly BytePath[];
  /** It ends in `/` or `/.`, so its target must be a folder. */
  isFolder: boolean;
  /** As Go's filepath.Base: the last part, `.` for a path that ends in `/.`, `/` for the root. */
  base: BytePath;
}>;

/** `path` is text; the parts are bytes. Relative paths count from the root, `..` ends there. */
export function innerPathOf(path: string): InnerPath {
  const bytes = Buffer.from(path).toString('latin1');
  const parts: BytePath[] = [];
  for (const part of bytes.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  const last = bytes.split('/').findLast((part) => part !== '') ?? '';
  const isSelf = last === '.' && !bytes.endsWith('/');
  return {
    parts,
    isFolder: bytes.endsWith('/') || isSelf || parts.length === 0,
    base: isSelf ? '.' : (parts.at(-1) ?? '/'),
  };
}
