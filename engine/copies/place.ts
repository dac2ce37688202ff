import { accessSync, closeSync, constants, fstatSync } from 'node:fs';

import { holdAt, mountIdOf, setOwnerAndMode } from '../host/files/held-files.ts';
import { holdInRoot, linkAt, mkdirAt, setTimesAt, typeAt, type BytePath, type Timespec } from '../host/files/openat.ts';
import { EntryFile, makeSymlink } from '../layers/tar/entry-file.ts';
import { innerParts, quotePath } from '../layers/tar/entry-names.ts';
import { makeNode, setXattrs, TYPE } from '../layers/tar/node-attributes.ts';
import { badArchive, type TarEntry } from '../layers/tar/tar-header.ts';
import type { TarSink } from '../layers/tar/tar-reader.ts';
import { EngineError, hasCode } from '../lib/errors.ts';
import type { MappedOwners } from './mapped-owners.ts';
import type { PlaceOptions } from './messages.ts';
import { innerPathOf } from './paths.ts';
import { removeAt, removeFileAt } from './remove-held.ts';

type Parts = readonly BytePath[];
type Owner = Readonly<{ uid: number; gid: number }>;

/**
 * Puts the entries of an archive into a folder of a container.
 *
 * Processes of the container may change the folder meanwhile: every path is resolved below the container's root, files
 * are only created under free names, and attributes are set by descriptors or without following a link.
 */
export class Placer implements TarSink, Disposable {
  readonly #root: number;
  readonly #owners: MappedOwners | undefined;
  readonly #place: Parts;
  readonly #options: PlaceOptions;
  /** Times of folders, set after everything in them is written. */
  readonly #times = new Map<string, { parts: Parts; time: Timespec }>();
  /** The folder of the last entry, because archives go folder by folder. */
  #parent: { path: string; fd: number } | undefined;
  #file: EntryFile | undefined;

  /** Throws `invalid` for anything but a folder, and `forbidden` for a read-only one. */
  constructor({ root, owners }: Readonly<{ root: number; owners?: MappedOwners | undefined }>, options: PlaceOptions) {
    this.#root = root;
    this.#owners = owners;
    this.#options = options;
    this.#place = innerPathOf(options.path).parts;
    const held = holdInRoot(root, this.#place.join('/'));
    try {
      if (!fstatSync(held).isDirectory()) throw new EngineError('invalid', 'extraction point is not a directory');
      refuseReadOnly(root, held);
    } finally {
      closeSync(held);
    }
  }

  begin(entry: TarEntry): void {
    const parts = partsOf(entry.path, this.#options.path);
    const name = parts.at(-1);
    if (name === undefined) return; // the folder itself keeps its attributes
    try {
      this.#write(() => {
        const folder = this.#folder(parts.slice(0, -1));
        this.#add(this.#withAttributesOutside(entry, folder), folder, name, parts);
      });
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
      if (file !== undefined) this.#write(() => file.finish());
    } catch (error) {
      throw explainEntryError(error, file!.entry);
    }
  }

  /** Ends the archive: sets the times of the folders. */
  complete(): void {
    for (const { parts, time } of this.#times.values()) {
      try {
        setTimesAt(this.#folder(parts.slice(0, -1)), parts.at(-1)!, time);
      } catch (error) {
        if (!hasCode(error, 'ENOENT')) throw error; // it was removed meanwhile
      }
    }
  }

  [Symbol.dispose](): void {
    this.#file?.[Symbol.dispose]();
    this.#forgetParent();
  }

  #add(entry: TarEntry, folder: number, name: BytePath, parts: Parts): void {
    const isFolder = entry.type === 'directory';
    if (!isFolder && this.#makesRoom(folder, name, parts)) {
      this.#make(entry, folder, name, parts);
      return;
    }
    const there = typeAt(folder, name);
    if (there !== undefined && !(there === TYPE.directory && isFolder)) {
      this.#refuseOtherKind(there === TYPE.directory, isFolder, parts);
      removeAt(folder, name);
      this.#forgetTimesBelow(parts);
    }
    if (there === TYPE.directory && isFolder) this.#finishFolder(entry, folder, name, parts);
    else this.#make(entry, folder, name, parts);
  }

  /** Whether the name is free now; false for a folder and for a mount. */
  #makesRoom(folder: number, name: BytePath, parts: Parts): boolean {
    const found = removeFileAt(folder, name);
    if (found === 'removed') this.#forgetTimesBelow(parts);
    return found !== 'other';
  }

  #make(entry: TarEntry, folder: number, name: BytePath, parts: Parts): void {
    switch (entry.type) {
      case 'file':
        this.#file = new EntryFile(entry, folder, name, this.#ownerOf(entry, folder));
        return;
      case 'directory':
        mkdirAt(folder, name, 0o700);
        this.#finishFolder(entry, folder, name, parts);
        return;
      case 'symlink':
        makeSymlink(entry, folder, name, this.#ownerOf(entry, folder));
        return;
      case 'link':
        this.#link(entry, folder, name);
        return;
      case 'charDevice':
      case 'blockDevice':
      case 'fifo':
        if (!makeNode(entry, entry.type, folder, name)) return;
        this.#setAttributes(entry, folder, name);
        setTimesAt(folder, name, entry.mtime);
    }
  }

  #finishFolder(entry: TarEntry, folder: number, name: BytePath, parts: Parts): void {
    this.#setAttributes(entry, folder, name);
    this.#times.set(parts.join('/'), { parts, time: entry.mtime });
  }

  /** Sets the attributes of a folder or a node. Fails if a link has replaced it meanwhile. */
  #setAttributes(entry: TarEntry, folder: number, name: BytePath): void {
    const held = holdAt(folder, name);
    try {
      setOwnerAndMode(held, { ...this.#ownerOf(entry, folder), mode: entry.mode });
    } finally {
      closeSync(held);
    }
    setXattrs(folder, name, entry);
  }

  #link(entry: TarEntry, folder: number, name: BytePath): void {
    const target = partsOf(entry.linkPath, this.#options.path, (path) => `invalid hardlink ${path}`);
    const from = holdInRoot(this.#root, [...this.#place, ...target.slice(0, -1)].join('/'));
    try {
      linkAt(from, target.at(-1) ?? '.', folder, name);
    } finally {
      closeSync(from);
    }
  }

  /** The folder with this path below the place; missing ones are created, with their parents. */
  #folder(parts: Parts): number {
    const path = parts.join('/');
    if (this.#parent?.path === path) return this.#parent.fd;
    const fd = this.#holdOrMake(parts);
    this.#forgetParent();
    this.#parent = { path, fd };
    return fd;
  }

  #holdOrMake(parts: Parts): number {
    const path = [...this.#place, ...parts].join('/');
    try {
      return holdInRoot(this.#root, path);
    } catch (error) {
      if (!hasCode(error, 'ENOENT') || parts.length === 0) throw error;
    }
    const above = this.#holdOrMake(parts.slice(0, -1));
    try {
      mkdirAt(above, parts.at(-1)!, 0o755);
      const made = holdAt(above, parts.at(-1)!);
      try {
        setOwnerAndMode(made, { ...this.#outside({ uid: 0, gid: 0 }, above), mode: 0o755 });
      } finally {
        closeSync(made);
      }
    } finally {
      closeSync(above);
    }
    return holdInRoot(this.#root, path);
  }

  #refuseOtherKind(isFolder: boolean, becomesFolder: boolean, parts: Parts): void {
    if (!this.#options.keepsKinds || isFolder === becomesFolder) return;
    const place = `/${this.#place.join('/')}`;
    const path = quotePath([place === '/' ? '' : place, ...parts].join('/'));
    const [old, next] = isFolder ? ['directory', 'non-directory'] : ['non-directory', 'directory'];
    throw new EngineError('invalid', `cannot overwrite ${old} ${path} with ${next} ${quotePath(place)}`);
  }

  #ownerOf({ uid, gid }: TarEntry, folder: number): Owner {
    return this.#outside(this.#options.owner ?? { uid, gid }, folder);
  }

  #outside(owner: Owner, folder: number): Owner {
    return this.#owners?.toOutside(folder, owner) ?? owner;
  }

  #withAttributesOutside(entry: TarEntry, folder: number): TarEntry {
    if (this.#owners === undefined) return entry;
    return { ...entry, xattrs: this.#owners.attributesToOutside(folder, entry.xattrs) };
  }

  #write<T>(work: () => T): T {
    return this.#owners === undefined ? work() : this.#owners.write(work);
  }

  #forgetTimesBelow(parts: Parts): void {
    const path = parts.join('/');
    for (const other of this.#times.keys()) {
      if (other === path || other.startsWith(`${path}/`)) this.#times.delete(other);
    }
  }

  #forgetParent(): void {
    if (this.#parent !== undefined) closeSync(this.#parent.fd);
    this.#parent = undefined;
  }
}

/** By the mount, which the kernel would refuse as well, so that nothing is written before. */
function refuseReadOnly(root: number, held: number): void {
  try {
    accessSync(`/proc/self/fd/${held}`, constants.W_OK);
  } catch (error) {
    if (!hasCode(error, 'EROFS')) throw error;
    const isRoot = mountIdOf(root) === mountIdOf(held);
    throw new EngineError('forbidden', `${isRoot ? 'container rootfs' : 'mounted volume'} is marked read-only`);
  }
}

/** The parts of a name below the folder `place`. Throws for a name that leads out of it. */
function partsOf(path: BytePath, place: string, what = (name: string): string => name): BytePath[] {
  const parts = innerParts(path);
  if (parts === undefined) throw badArchive(`${what(quotePath(path))} is outside of ${JSON.stringify(place)}`);
  return parts;
}

/** A failure of the kernel in terms of the archive. */
function explainEntryError(error: unknown, entry: TarEntry): unknown {
  const name = quotePath(entry.path);
  if (hasCode(error, 'EROFS'))
    return new EngineError('forbidden', 'mounted volume is marked read-only', { cause: error });
  if (hasCode(error, 'ENAMETOOLONG')) return badArchive(`the name ${name.slice(0, 80)}… is too long`, error);
  if (hasCode(error, 'EFBIG')) return badArchive(`${name} is larger than a file can be`, error);
  if (entry.type === 'link') {
    const target = quotePath(entry.linkPath);
    if (hasCode(error, 'ENOENT')) return badArchive(`${name} is a link to ${target}, which does not exist`, error);
    if (hasCode(error, 'EPERM')) return badArchive(`${name} is a link to ${target}, which is a folder`, error);
    if (hasCode(error, 'EXDEV')) return badArchive(`${name} is a link to ${target}, which is on another mount`, error);
  }
  if (hasCode(error, 'ENOTDIR')) return badArchive(`${name} is below something that is not a folder`, error);
  if (['ELOOP', 'EEXIST', 'ENOENT', 'EOPNOTSUPP'].some((code) => hasCode(error, code))) {
    return badArchive(`${name} is below a link that leads nowhere, or was changed meanwhile`, error);
  }
  return error;
}
