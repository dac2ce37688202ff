import { closeSync, readlinkSync } from 'node:fs';

import { holdInRoot, openRoot } from '../host/openat.ts';
import { hasCode } from '../lib/errors.ts';

const MOST_LINKS = 40;

/**
 * Where a path of a container is, when links on its way lead to what is not there yet: crun makes folders, but none
 * behind such a link. A path that is there, or cannot be, is returned as it is; crun looks for itself once more.
 */
export function placeIn(root: string, path: string): string {
  const top = openRoot(root);
  try {
    closeSync(holdInRoot(top, bytes(path)));
    return path;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return behindLinks(top, path);
    if (['ENOTDIR', 'ELOOP', 'EACCES'].some((code) => hasCode(error, code))) return path;
    throw error;
  } finally {
    closeSync(top);
  }
}

function behindLinks(top: number, path: string): string {
  const found: string[] = [];
  const left = path.split('/');
  for (let links = 0; left.length > 0;) {
    const part = left.shift()!;
    if (part === '' || part === '.') continue;
    if (part === '..') {
      found.pop();
      continue;
    }
    const target = linkAt(top, found, part);
    if (target === undefined) {
      found.push(part);
      continue;
    }
    links += 1;
    if (links > MOST_LINKS) return path;
    if (target.startsWith('/')) found.length = 0;
    left.unshift(...target.split('/'));
  }
  return `/${found.join('/')}`;
}

/** What a link says; undefined for anything else. `folder` has no links left, and is resolved inside the root anyway. */
function linkAt(top: number, folder: readonly string[], name: string): string | undefined {
  let held: number | undefined;
  try {
    held = holdInRoot(top, bytes(folder.join('/')));
    return readlinkSync(`/proc/self/fd/${held}/${name}`);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EINVAL', 'ELOOP', 'EACCES'].some((code) => hasCode(error, code))) return undefined;
    throw error;
  } finally {
    if (held !== undefined) closeSync(held);
  }
}

function bytes(path: string): string {
  return Buffer.from(path).toString('latin1');
}
