import { lstatSync, type Stats } from 'node:fs';
import { join } from 'node:path';

import { xattrOf } from '../../host/files/held-files.ts';
import { readable, type BytePath } from '../../host/files/openat.ts';
import { overlayAttribute } from '../../host/rootless.ts';
import { isMountPoint } from './mount-points.ts';
import type { NewEntry } from './tar-entry.ts';

const OPAQUE = overlayAttribute('opaque');
const TYPE = { mask: 0o170000, charDevice: 0o020000, file: 0o100000 } as const;

/** How a writable layer is packed. */
export type Rules = Pick<LayerRules, 'isOwnFile' | 'isOwnFolder'>;

/**
 * The entries of a writable layer that are not the container's: the runtime's mount points, unless an image has them.
 */
export class LayerRules {
  readonly #lower: readonly string[];
  readonly #more: ReadonlySet<string>;

  /** `lower`: the folders of the layers below, topmost first. `more`: further mount points. */
  constructor(lower: readonly string[], more: readonly string[] = []) {
    this.#lower = lower;
    this.#more = new Set(more);
  }

  /** An empty file that was created as a mount point. */
  isOwnFile(path: BytePath, { mode, size }: Stats): boolean {
    if ((mode & TYPE.mask) !== TYPE.file || size !== 0 || !this.#isPlace(path)) return false;
    return this.#below(path) === undefined;
  }

  /** A folder that counts only with its content: it is a mount point, or is here because of one in it. */
  isOwnFolder(path: BytePath, { mode, uid, gid }: Stats): boolean {
    if (!this.#isPlace(path)) return false;
    const below = this.#below(path);
    return below === undefined || (below.mode === mode && below.uid === uid && below.gid === gid);
  }

  #isPlace(path: BytePath): boolean {
    const absolute = absoluteOf(path);
    return isMountPoint(absolute) || this.#more.has(absolute);
  }

  /** The entry of the layers below. */
  #below(path: BytePath): Stats | undefined {
    for (const folder of this.#lower) {
      const below = lstatSync(join(folder, absoluteOf(path)), { throwIfNoEntry: false });
      if (below !== undefined) return isWhiteout(below) ? undefined : below;
    }
    return undefined;
  }
}

function absoluteOf(path: BytePath): string {
  return `/${readable(path).replace(/\/$/, '')}`;
}

/** For a layer without runs: everything counts. */
export const ALL: Rules = {
  isOwnFile: () => false,
  isOwnFolder: () => false,
};

/** A removed file, in overlayfs's form. */
export function isWhiteout({ mode, rdev }: Stats): boolean {
  return (mode & TYPE.mask) === TYPE.charDevice && rdev === 0;
}

/** Whether a folder hides the one below. */
export function isOpaque(held: number): boolean {
  return xattrOf(held, OPAQUE)?.toString() === 'y';
}

/** A whiteout in an archive. */
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
