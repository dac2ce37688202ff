import { lstatSync, type Stats } from 'node:fs';
import { join } from 'node:path';

import { xattrOf } from '../../host/files/look-at.ts';
import { readable, type BytePath } from '../../host/files/openat.ts';
import { isMountPoint } from './mount-points.ts';
import type { NewEntry } from './tar-entry.ts';

const OPAQUE = 'trusted.overlay.opaque';
const TYPE = { mask: 0o170000, charDevice: 0o020000, file: 0o100000 } as const;

/** What of a writable layer is not the container's: the runtime's mount points, unless an image has them already. */
export class LayerRules {
  readonly #lower: readonly string[];
  readonly #more: ReadonlySet<string>;

  /** `lower`: the folders of the layers below, topmost first. `more`: other places that were mounted on. */
  constructor(lower: readonly string[], more: readonly string[] = []) {
    this.#lower = lower;
    this.#more = new Set(more);
  }

  /** An empty file that was made to be mounted on. */
  isOwnFile(path: BytePath, { mode, size }: Stats): boolean {
    return (mode & TYPE.mask) === TYPE.file && size === 0 && this.#isMadeHere(path);
  }

  /** A folder that counts only if something is in it. */
  isOwnFolder(path: BytePath): boolean {
    return this.#isMadeHere(path);
  }

  #isMadeHere(path: BytePath): boolean {
    const absolute = `/${readable(path).replace(/\/$/, '')}`;
    if (!isMountPoint(absolute) && !this.#more.has(absolute)) return false;
    for (const folder of this.#lower) {
      const below = lstatSync(join(folder, absolute), { throwIfNoEntry: false });
      if (below !== undefined) return isWhiteout(below);
    }
    return true;
  }
}

/** A removed file, in overlayfs's form. */
export function isWhiteout({ mode, rdev }: Stats): boolean {
  return (mode & TYPE.mask) === TYPE.charDevice && rdev === 0;
}

/** Whether a folder hides the one below. */
export function isOpaque(held: number): boolean {
  return xattrOf(held, OPAQUE)?.toString() === 'y';
}

/** The same in an archive. */
export function whiteout(path: BytePath, stat: Stats): NewEntry {
  const slash = path.lastIndexOf('/') + 1;
  return mark(`${path.slice(0, slash)}.wh.${path.slice(slash)}`, stat, 0o600);
}

export function opaqueMark(folder: BytePath, stat: Stats): NewEntry {
  return mark(`${folder}.wh..wh..opq`, stat, stat.mode & 0o777);
}

function mark(path: BytePath, { uid, gid, mtimeMs }: Stats, mode: number): NewEntry {
  return { path, type: 'file', mode, uid, gid, sizeBytes: 0, mtimeSeconds: Math.floor(mtimeMs / 1000) };
}
