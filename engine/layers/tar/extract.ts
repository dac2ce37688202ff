import { rmSync } from 'node:fs';

import {
  linkAt,
  mkdirAt,
  mknodAt,
  readable,
  setTimesAt,
  typeAt,
  unlinkAt,
  type BytePath,
} from '../../host/files/openat.ts';
import { hasCode } from '../../lib/errors.ts';
import { explainEntryError } from './entry-errors.ts';
import { EntryFile, makeSymlink } from './entry-file.ts';
import { innerPath } from './entry-names.ts';
import { ExtractedFolders, joinPath, markOpaque, splitPath } from './extracted-folders.ts';
import { makeNode, setNodeAttributes, TYPE } from './node-attributes.ts';
import { badArchive, type TarEntry } from './tar-header.ts';
import type { TarSink } from './tar-reader.ts';

export const WHITEOUT = '.wh.';
/** Bookkeeping files of aufs; only the opaque mark has a meaning. */
const AUFS = '.wh..wh.';
const OPAQUE = '.wh..wh..opq';

/** The place of an entry: its open folder, its name there, and its path, none of which is a link. */
type Place = Readonly<{ directory: number; name: BytePath; path: BytePath }>;

/**
 * Writes the entries of a layer's archive into a folder in overlayfs's own form: a removed file is a device 0/0, and a
 * folder that hides the one below carries a mark. Nothing is written outside of the folder.
 */
export class LayerExtractor implements TarSink, Disposable {
  readonly #folders: ExtractedFolders;
  readonly #hasMarks: boolean;
  #file: EntryFile | undefined;
  #sizeBytes = 0;
  #isPlain = true;

  /** `hasMarks`: names that begin with `.wh.` remove something; else they are names like others. */
  constructor(target: string, { hasMarks = true } = {}) {
    this.#folders = new ExtractedFolders(target);
    this.#hasMarks = hasMarks;
  }

  /** The size of the files written so far. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Whether each file so far has the content of one entry, and each content a file: nothing was replaced, nor behind a link. */
  get isPlain(): boolean {
    return this.#isPlain && !this.#folders.isBehindLinks;
  }

  begin(entry: TarEntry): void {
    const inner = innerPath(entry.path, 'the name');
    const [parent, name] = splitPath(inner);
    try {
      if (inner === '') this.#addRoot(entry);
      else if (this.#hasMarks && name.startsWith(WHITEOUT)) {
        if (entry.sizeBytes > 0) this.#isPlain = false; // its content does not become a file
        this.#whiteOut(parent, name);
      } else {
        const { fd, path } = this.#folders.open(parent);
        this.#add(entry, { directory: fd, name, path: joinPath(path, name) });
      }
    } catch (error) {
      throw explainEntryError(error, entry);
    }
  }

  data(chunk: Buffer, position: number): void {
    this.#file?.write(chunk, position);
  }

  finish(): void {
    const file = this.#file;
    this.#file = undefined;
    try {
      file?.finish();
    } catch (error) {
      throw explainEntryError(error, file!.entry);
    }
  }

  /** Whether `complete` needs the layers below. */
  get impliesFolders(): boolean {
    return this.#folders.hasImplied;
  }

  /**
   * Ends the archive: sets the times of the folders. `lower` are the folders of the layers below, topmost first: an implied
   * folder takes its attributes from there.
   */
  complete(lower: readonly string[] = []): void {
    this.#folders.complete(lower);
  }

  [Symbol.dispose](): void {
    this.#file?.[Symbol.dispose]();
    this.#folders[Symbol.dispose]();
  }

  #add(entry: TarEntry, place: Place): void {
    try {
      this.#make(entry, place);
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error;
      const there = this.#makeRoom(entry, place);
      if (there === 'nothing') this.#make(entry, place);
      else this.#finishDirectory(entry, place);
    }
  }

  /** The name must not exist. */
  #make(entry: TarEntry, place: Place): void {
    const { directory, name, path } = place;
    switch (entry.type) {
      case 'file':
        this.#file = new EntryFile(entry, directory, name);
        this.#sizeBytes += entry.sizeBytes;
        return;
      case 'directory':
        mkdirAt(directory, name, entry.mode);
        this.#finishDirectory(entry, place);
        return;
      case 'symlink':
        makeSymlink(entry, directory, name);
        this.#folders.addLink(path);
        this.#sizeBytes += entry.linkPath.length; // as the kernel counts it, and dockerd
        return;
      case 'link':
        this.#link(entry, place);
        return;
      case 'charDevice':
      case 'blockDevice':
      case 'fifo':
        if (!makeNode(entry, entry.type, directory, name)) return;
        setNodeAttributes(directory, name, entry);
        setTimesAt(directory, name, entry.mtime);
    }
  }

  #finishDirectory(entry: TarEntry, { directory, name, path }: Place): void {
    setNodeAttributes(directory, name, entry);
    this.#folders.describe(path, directory, name, entry.mtime);
  }

  /** A later entry replaces an earlier one of the same name; a folder merges with a folder. */
  #makeRoom(entry: TarEntry, { directory, name, path }: Place): 'nothing' | 'folder' {
    if (typeAt(directory, name) === TYPE.directory) {
      if (entry.type === 'directory') return 'folder';
      rmSync(Buffer.from(`/proc/self/fd/${directory}/${name}`, 'latin1'), { recursive: true, force: true });
      this.#folders.forget(path);
    } else {
      unlinkAt(directory, name);
    }
    this.#isPlain = false;
    return 'nothing';
  }

  /** The archive's root: it exists already, and stays a folder. */
  #addRoot(entry: TarEntry): void {
    if (entry.type !== 'directory') throw badArchive('its root is not a directory');
    const { fd } = this.#folders.open('');
    setNodeAttributes(fd, '.', entry);
    this.#folders.describe('', fd, '.', entry.mtime);
  }

  #whiteOut(parent: BytePath, name: BytePath): void {
    if (name === OPAQUE) {
      markOpaque(this.#folders.open(parent).fd, '.');
      return;
    }
    if (name.startsWith(AUFS)) return;
    const removed = name.slice(WHITEOUT.length);
    if (removed === '' || removed === '.' || removed === '..') throw badArchive(`${readable(name)} removes nothing`);
    const { path, fd } = this.#folders.open(parent);
    const there = typeAt(fd, removed);
    // A mark applies to the layers below, not to entries of this layer.
    if (there === TYPE.directory) markOpaque(fd, removed);
    if (there !== undefined) return;
    mknodAt(fd, removed, TYPE.charDevice, 0, 0);
    this.#folders.addWhiteout(joinPath(path, removed));
  }

  #link(entry: TarEntry, { directory, name, path }: Place): void {
    const [folder, target] = splitPath(innerPath(entry.linkPath, 'the link'));
    this.#folders.at(folder, (fd) => linkAt(fd, target || '.', directory, name));
    if (typeAt(directory, name) === TYPE.symlink) this.#folders.addLink(path);
    else setNodeAttributes(directory, name, entry);
    setTimesAt(directory, name, entry.mtime);
  }
}
