import { closeSync, readlinkSync } from 'node:fs';

import { setOwnerAndMode } from '../../host/files/held-files.ts';
import {
  chmodAt,
  mkdirAt,
  openDirectoryInRoot,
  openRoot,
  setTimesAt,
  setXattrAt,
  unlinkAt,
  type BytePath,
  type Timespec,
} from '../../host/files/openat.ts';
import { overlayAttribute } from '../../host/rootless.ts';
import { hasCode } from '../../lib/errors.ts';
import { folderBelow } from './lower-folders.ts';

const OPAQUE_XATTR = overlayAttribute('opaque');

/** An open folder; no part of its path is a link. */
export type Folder = Readonly<{ path: BytePath; fd: number }>;

/**
 * The folders of a layer that is being extracted. The kernel resolves every name as if the layer were the root, so that no
 * link leads out. Paths are those behind the links: two names of one folder must not be taken for two folders.
 */
export class ExtractedFolders implements Disposable {
  readonly #root: number;
  /** The times of folders, set after everything in them is written. */
  readonly #times = new Map<BytePath, Timespec>();
  /** Folders that no entry describes so far. */
  readonly #implied = new Set<BytePath>();
  /** Names that this layer removes, unless the layer itself has an entry of that name. */
  readonly #whiteouts = new Set<BytePath>();
  readonly #links = new Set<BytePath>();
  /** The folder of the last entry, because archives go folder by folder; `name` is the entry's name for it. */
  #last: { name: BytePath; folder: Folder } | undefined;
  #isBehindLinks = false;

  constructor(target: string) {
    this.#root = openRoot(target);
  }

  /** Whether a folder was opened through a link. */
  get isBehindLinks(): boolean {
    return this.#isBehindLinks;
  }

  get hasImplied(): boolean {
    return this.#implied.size > 0;
  }

  /** Opens a folder, and creates missing ones on the way. It stays open until the next one is. */
  open(name: BytePath): Folder {
    if (this.#last?.name === name) return this.#last.folder;
    const folder = this.#openOrMake(name);
    this.#closeLast();
    this.#last = { name, folder };
    return folder;
  }

  /** Calls `use` with an existing folder. */
  at(name: BytePath, use: (fd: number) => void): void {
    const fd = openDirectoryInRoot(this.#root, name);
    try {
      use(fd);
    } finally {
      closeSync(fd);
    }
  }

  /** Records that an entry describes the folder `name` in the folder `directory`. */
  describe(path: BytePath, directory: number, name: BytePath, time: Timespec): void {
    // A folder of this layer may come after the mark that removes the one below.
    if (this.#whiteouts.delete(path)) markOpaque(directory, name);
    this.#implied.delete(path);
    this.#times.set(path, time);
  }

  addLink(path: BytePath): void {
    this.#links.add(path);
  }

  addWhiteout(path: BytePath): void {
    this.#whiteouts.add(path);
  }

  /** Forgets a removed folder and the folders below it. */
  forget(path: BytePath): void {
    for (const known of [this.#times, this.#implied]) {
      for (const other of known.keys()) if (other === path || other.startsWith(`${path}/`)) known.delete(other);
    }
  }

  /** Sets the times. `lower` are the folders of the layers below: an implied folder takes its attributes from there. */
  complete(lower: readonly string[]): void {
    for (const path of this.#implied) this.#likeBelow(path, lower);
    for (const [path, time] of this.#times) {
      const [parent, name] = splitPath(path);
      setTimesAt(this.open(parent).fd, name || '.', time);
    }
  }

  [Symbol.dispose](): void {
    this.#closeLast();
    closeSync(this.#root);
  }

  #openOrMake(name: BytePath): Folder {
    try {
      const fd = openDirectoryInRoot(this.#root, name);
      return { path: this.#pathOf(name, fd), fd };
    } catch (error) {
      if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENOTDIR')) throw error;
    }
    const [parent, last] = splitPath(name);
    const above = this.#openOrMake(parent);
    const path = joinPath(above.path, last);
    try {
      const isWhiteout = this.#whiteouts.delete(path);
      if (isWhiteout) unlinkAt(above.fd, last);
      mkdirAt(above.fd, last, 0o755);
      chmodAt(above.fd, last, 0o755);
      if (isWhiteout) markOpaque(above.fd, last);
      else this.#implied.add(path);
    } finally {
      closeSync(above.fd);
    }
    return { path, fd: openDirectoryInRoot(this.#root, path) };
  }

  #pathOf(name: BytePath, fd: number): BytePath {
    if (!this.#hasLinkIn(name)) return name;
    this.#isBehindLinks = true;
    const [root, folder] = [this.#root, fd].map((each) => readlinkSync(`/proc/self/fd/${each}`, 'latin1'));
    return folder!.slice(root!.length + 1);
  }

  #hasLinkIn(path: BytePath): boolean {
    for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
      if (this.#links.has(path.slice(0, at))) return true;
    }
    return this.#links.has(path);
  }

  /** In the merged view the topmost folder's attributes count, so an implied folder copies those of the one below. */
  #likeBelow(path: BytePath, lower: readonly string[]): void {
    const below = folderBelow(lower, path);
    if (below === undefined) return;
    const mode = Number(below.mode & 0o7777n);
    // Through the descriptor: a chmod by name follows a link, also out of the root.
    this.at(path, (fd) => setOwnerAndMode(fd, { uid: Number(below.uid), gid: Number(below.gid), mode }));
    const nanoseconds = Number(below.mtimeNs % 1_000_000_000n);
    this.#times.set(path, { seconds: Number(below.mtimeNs / 1_000_000_000n), nanoseconds });
  }

  #closeLast(): void {
    if (this.#last !== undefined) closeSync(this.#last.folder.fd);
    this.#last = undefined;
  }
}

/** Makes a folder hide the one below. */
export function markOpaque(directory: number, name: BytePath): void {
  setXattrAt(directory, name, OPAQUE_XATTR, Buffer.from('y'));
}

/** A path as its folder and the last name; both are empty for the root. */
export function splitPath(path: BytePath): [folder: BytePath, name: BytePath] {
  const slash = path.lastIndexOf('/');
  return [path.slice(0, Math.max(slash, 0)), path.slice(slash + 1)];
}

export function joinPath(folder: BytePath, name: BytePath): BytePath {
  return folder === '' ? name : `${folder}/${name}`;
}
