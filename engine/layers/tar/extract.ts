import { closeSync, ftruncateSync, rmSync, writeSync } from 'node:fs';

import {
  chmodAt,
  chownAt,
  createFileAt,
  linkAt,
  mkdirAt,
  mknodAt,
  openDirectoryBeneath,
  openRoot,
  readable,
  setAttributes,
  setTimesAt,
  setXattrAt,
  symlinkAt,
  typeAt,
  unlinkAt,
  type BytePath,
  type Timespec,
} from '../../host/files/openat.ts';
import { hasCode } from '../../lib/errors.ts';
import { explained } from './entry-errors.ts';
import { innerPath, shown } from './entry-names.ts';
import { folderBelow } from './lower-folders.ts';
import { makeNode, setNodeAttributes, setXattrs, TYPE } from './node-attributes.ts';
import { badArchive, type TarEntry } from './tar-header.ts';
import type { TarSink } from './tar-reader.ts';

const WHITEOUT = '.wh.';
/** Bookkeeping files of aufs; only the opaque mark has a meaning. */
const AUFS = '.wh..wh.';
const OPAQUE = '.wh..wh..opq';
const OPAQUE_XATTR = 'trusted.overlay.opaque';

/**
 * Writes the entries of a layer's archive into a folder in overlayfs's own form: a removed file is a device 0/0, and a
 * folder that hides the one below carries a mark.
 *
 * The kernel resolves every name below the open folder, so that no link leads out.
 */
export class LayerExtractor implements TarSink, Disposable {
  readonly #root: number;
  readonly #hasMarks: boolean;
  /** The times of folders, set after everything in them is written. */
  readonly #times = new Map<BytePath, Timespec>();
  /** Folders that no entry describes so far. */
  readonly #implied = new Set<BytePath>();
  /** Names that this layer removes, unless the layer itself has an entry of that name. */
  readonly #whiteouts = new Set<BytePath>();
  /** The folder of the last entry, because archives go folder by folder. */
  #parent: { path: BytePath; fd: number } | undefined;
  #file: { entry: TarEntry; fd: number; directory: number; name: BytePath; endBytes: number } | undefined;
  #sizeBytes = 0;
  readonly #links = new Set<BytePath>();
  #isPlain = true;

  /** `hasMarks`: names that begin with `.wh.` remove something; else they are names like others. */
  constructor(target: string, { hasMarks = true } = {}) {
    this.#root = openRoot(target);
    this.#hasMarks = hasMarks;
  }

  /** The size of the files written so far. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Whether each file so far has the content of one entry, and each content a file: nothing was replaced, nor behind a link. */
  get isPlain(): boolean {
    return this.#isPlain;
  }

  begin(entry: TarEntry): void {
    const path = innerPath(entry.path, 'the name');
    const slash = path.lastIndexOf('/');
    const parent = slash < 0 ? '' : path.slice(0, slash);
    const name = path.slice(slash + 1);
    try {
      if (path === '') this.#addRoot(entry);
      else if (this.#hasMarks && name.startsWith(WHITEOUT)) {
        if (entry.sizeBytes > 0) this.#isPlain = false; // its content does not become a file
        this.#whiteOut(parent, name);
      } else this.#add(entry, this.#directory(parent), name, path);
    } catch (error) {
      throw explained(error, entry);
    }
  }

  data(chunk: Buffer, position: number): void {
    if (this.#file === undefined) return;
    for (let written = 0; written < chunk.length;) {
      written += writeSync(this.#file.fd, chunk, written, chunk.length - written, position + written);
    }
    this.#file.endBytes = position + chunk.length;
  }

  finish(): void {
    if (this.#file === undefined) return;
    const { entry, fd, directory, name, endBytes } = this.#file;
    this.#file = undefined;
    try {
      const { uid, gid, mode, mtime, sizeBytes } = entry;
      if (endBytes !== sizeBytes) ftruncateSync(fd, sizeBytes); // the hole at the end of a sparse file
      setAttributes(fd, { uid, gid, mode, mtime });
      setXattrs(directory, name, entry);
    } catch (error) {
      throw explained(error, entry);
    } finally {
      closeSync(fd);
    }
  }

  /** Whether `complete` needs the layers below. */
  get impliesFolders(): boolean {
    return this.#implied.size > 0;
  }

  /**
   * Ends the archive: sets the times of the folders. `lower` are the folders of the layers below, topmost first: an implied
   * folder takes its attributes from there.
   */
  complete(lower: readonly string[] = []): void {
    for (const path of this.#implied) this.#likeBelow(path, lower);
    for (const [path, time] of this.#times) {
      const slash = path.lastIndexOf('/');
      if (path === '') setTimesAt(this.#directory(''), '.', time);
      else setTimesAt(this.#directory(slash < 0 ? '' : path.slice(0, slash)), path.slice(slash + 1), time);
    }
  }

  [Symbol.dispose](): void {
    if (this.#file !== undefined) closeSync(this.#file.fd);
    this.#forgetParent();
    closeSync(this.#root);
  }

  #add(entry: TarEntry, directory: number, name: BytePath, path: BytePath): void {
    try {
      this.#make(entry, directory, name, path);
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error;
      const there = this.#makeRoom(entry, directory, name, path);
      if (there === 'nothing') this.#make(entry, directory, name, path);
      else this.#finishDirectory(entry, directory, name, path);
    }
  }

  /** The name must not exist. */
  #make(entry: TarEntry, directory: number, name: BytePath, path: BytePath): void {
    switch (entry.type) {
      case 'file':
        this.#file = { entry, fd: createFileAt(directory, name), directory, name, endBytes: 0 };
        this.#sizeBytes += entry.sizeBytes;
        return;
      case 'directory':
        mkdirAt(directory, name, entry.mode);
        this.#finishDirectory(entry, directory, name, path);
        return;
      case 'symlink':
        // Any target is allowed: in a container it cannot lead out, and extraction never writes through a link that
        // leads out.
        if (entry.linkPath === '') throw badArchive(`the link ${shown(entry.path)} has no target`);
        symlinkAt(entry.linkPath, directory, name);
        this.#links.add(path);
        this.#sizeBytes += entry.linkPath.length; // as the kernel counts it, and dockerd
        chownAt(directory, name, entry.uid, entry.gid);
        setXattrs(directory, name, entry);
        setTimesAt(directory, name, entry.mtime);
        return;
      case 'link':
        this.#link(entry, directory, name);
        return;
      case 'charDevice':
      case 'blockDevice':
      case 'fifo':
        makeNode(entry, entry.type, directory, name);
        setNodeAttributes(directory, name, entry);
        setTimesAt(directory, name, entry.mtime);
    }
  }

  #finishDirectory(entry: TarEntry, directory: number, name: BytePath, path: BytePath): void {
    // A folder of this layer may come after the mark that removes the one below.
    if (this.#whiteouts.delete(path)) setXattrAt(directory, name, OPAQUE_XATTR, Buffer.from('y'));
    setNodeAttributes(directory, name, entry);
    this.#implied.delete(path);
    this.#times.set(path, entry.mtime);
  }

  /** A later entry replaces an earlier one of the same name; a folder merges with a folder. */
  #makeRoom(entry: TarEntry, directory: number, name: BytePath, path: BytePath): 'nothing' | 'folder' {
    if (typeAt(directory, name) === TYPE.directory) {
      if (entry.type === 'directory') return 'folder';
      this.#removeTree(directory, name, path);
    } else {
      unlinkAt(directory, name);
    }
    this.#isPlain = false;
    return 'nothing';
  }

  #removeTree(directory: number, name: BytePath, path: BytePath): void {
    rmSync(Buffer.from(`/proc/self/fd/${directory}/${name}`, 'latin1'), { recursive: true, force: true });
    for (const known of [this.#times, this.#implied]) {
      for (const other of known.keys()) if (other === path || other.startsWith(`${path}/`)) known.delete(other);
    }
  }

  /** The archive's root: it exists already, and stays a folder. */
  #addRoot(entry: TarEntry): void {
    if (entry.type !== 'directory') throw badArchive('its root is not a directory');
    setNodeAttributes(this.#directory(''), '.', entry);
    this.#times.set('', entry.mtime);
  }

  #whiteOut(parent: BytePath, name: BytePath): void {
    if (name === OPAQUE) {
      setXattrAt(this.#directory(parent), '.', OPAQUE_XATTR, Buffer.from('y'));
      return;
    }
    if (name.startsWith(AUFS)) return;
    const removed = name.slice(WHITEOUT.length);
    if (removed === '' || removed === '.' || removed === '..') throw badArchive(`${readable(name)} removes nothing`);
    const directory = this.#directory(parent);
    const there = typeAt(directory, removed);
    // A mark applies to the layers below, not to entries of this layer.
    if (there === TYPE.directory) setXattrAt(directory, removed, OPAQUE_XATTR, Buffer.from('y'));
    if (there !== undefined) return;
    mknodAt(directory, removed, TYPE.charDevice, 0, 0);
    this.#whiteouts.add(parent === '' ? removed : `${parent}/${removed}`);
  }

  #link(entry: TarEntry, directory: number, name: BytePath): void {
    const target = innerPath(entry.linkPath, 'the link');
    const slash = target.lastIndexOf('/');
    const from = openDirectoryBeneath(this.#root, slash < 0 ? '' : target.slice(0, slash));
    try {
      linkAt(from, target.slice(slash + 1), directory, name);
    } finally {
      closeSync(from);
    }
    if (typeAt(directory, name) !== TYPE.symlink) setNodeAttributes(directory, name, entry);
    setTimesAt(directory, name, entry.mtime);
  }

  /** Opens the folder with this path, and creates missing parents. */
  #directory(path: BytePath): number {
    if (this.#parent?.path === path) return this.#parent.fd;
    const fd = this.#openOrMake(path);
    this.#isPlain &&= !this.#hasLinkIn(path);
    this.#forgetParent();
    this.#parent = { path, fd };
    return fd;
  }

  #hasLinkIn(path: BytePath): boolean {
    for (let at = path.indexOf('/'); at > 0; at = path.indexOf('/', at + 1)) {
      if (this.#links.has(path.slice(0, at))) return true;
    }
    return this.#links.has(path);
  }

  #openOrMake(path: BytePath): number {
    try {
      return openDirectoryBeneath(this.#root, path);
    } catch (error) {
      if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENOTDIR')) throw error;
    }
    const slash = path.lastIndexOf('/');
    const name = path.slice(slash + 1);
    const above = this.#openOrMake(slash < 0 ? '' : path.slice(0, slash));
    try {
      const isWhiteout = this.#whiteouts.delete(path);
      if (isWhiteout) unlinkAt(above, name);
      mkdirAt(above, name, 0o755);
      chmodAt(above, name, 0o755);
      if (isWhiteout) setXattrAt(above, name, OPAQUE_XATTR, Buffer.from('y'));
      else this.#implied.add(path);
    } finally {
      closeSync(above);
    }
    return openDirectoryBeneath(this.#root, path);
  }

  /** In the merged view the topmost folder's attributes count, so an implied folder copies those of the one below. */
  #likeBelow(path: BytePath, lower: readonly string[]): void {
    const below = folderBelow(lower, path);
    if (below === undefined) return;
    const slash = path.lastIndexOf('/');
    const above = this.#directory(slash < 0 ? '' : path.slice(0, slash));
    const name = path.slice(slash + 1);
    chownAt(above, name, Number(below.uid), Number(below.gid));
    chmodAt(above, name, Number(below.mode & 0o7777n));
    const nanoseconds = Number(below.mtimeNs % 1_000_000_000n);
    this.#times.set(path, { seconds: Number(below.mtimeNs / 1_000_000_000n), nanoseconds });
  }

  #forgetParent(): void {
    if (this.#parent !== undefined) closeSync(this.#parent.fd);
    this.#parent = undefined;
  }
}
