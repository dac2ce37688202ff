import { closeSync } from 'node:fs';

import { append } from '../../lib/append.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { holdAt, targetOf } from './held-files.ts';
import { holdInRoot, readable, typeAt, type BytePath } from './openat.ts';

/** As in the kernel. */
const MAX_LINKS = 40;
const TYPE_SYMLINK = 0o120000;

/** Returns the target of the link `name` in `folder`, a path without links; undefined for anything else. */
export type LinkReader = (folder: readonly BytePath[], name: BytePath) => BytePath | undefined;

/**
 * Resolves all links of a path; its end may be missing. Absolute links and `..` stay inside of the root. Throws `failed`
 * for a circle of links.
 */
export function resolveLinks(parts: readonly BytePath[], readLink: LinkReader): BytePath[] {
  const done: BytePath[] = [];
  const left = [...parts].toReversed();
  for (let links = 0; left.length > 0;) {
    const part = left.pop()!;
    if (part === '..') done.pop();
    if (part === '' || part === '.' || part === '..') continue;
    const target = readLink(done, part);
    if (target === undefined) {
      done.push(part);
      continue;
    }
    links += 1;
    if (links > MAX_LINKS) throw new EngineError('failed', `too many links in /${readable(parts.join('/'))}`);
    if (target.startsWith('/')) done.length = 0;
    append(left, target.split('/').toReversed());
  }
  return done;
}

/** A reader for the links below an open folder. It opens nothing but folders and links. */
export function linksBelow(root: number): LinkReader {
  return (folder, name) => {
    using held = new DisposableStack();
    try {
      const parent = folder.length === 0 ? root : held.adopt(holdInRoot(root, folder.join('/')), closeSync);
      if (typeAt(parent, name) !== TYPE_SYMLINK) return undefined;
      return targetOf(held.adopt(holdAt(parent, name), closeSync));
    } catch (error) {
      // Missing, below a file, or replaced meanwhile by something else.
      if (['ENOENT', 'ENOTDIR', 'EINVAL'].some((code) => hasCode(error, code))) return undefined;
      throw error;
    }
  };
}
