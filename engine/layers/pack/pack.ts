import { closeSync, fstatSync, readSync, type Stats } from 'node:fs';

import { deviceMajor, deviceMinor } from '../../host/files/device-nodes.ts';
import { dataOf, holdAt, namesIn, openHeld, targetOf, xattrNamesOf, xattrOf } from '../../host/files/held-files.ts';
import type { BytePath } from '../../host/files/openat.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { BLOCK_BYTES, entryTypeOf, type EntryType, type Segment } from '../tar/tar-header.ts';
import { TAR_END } from '../tar/tar-write.ts';
import { isOpaque, isWhiteout, opaqueMark, whiteout, type Rules } from './layer-rules.ts';
import { entryHeader, type NewEntry } from './tar-entry.ts';

/** The root of an archive: a held entry, and its name; a folder without a name is packed without its own entry. */
type PackRoot = Readonly<{ held: number; name: BytePath | undefined }>;

/** A choice of entries by their paths in the archive. Folders of chosen ones are packed as well. */
export type Choice = Readonly<{
  includes: (path: BytePath) => boolean;
  /** Whether a folder that is left out may have chosen entries in it. */
  mayHold: (path: BytePath) => boolean;
}>;
/** Changes the owner that the kernel tells to that for the archive. */
type Owners = (stat: Stats) => Stats;
/** Changes the value of an extended attribute likewise. */
type Attribute = (name: string, value: Buffer, device: number) => Buffer;
type How = Readonly<{
  rules?: Rules | undefined;
  choice?: Choice | undefined;
  owners?: Owners | undefined;
  attribute?: Attribute | undefined;
  /** Called with each packed entry, the held folder that it is in, and its name there. */
  packed?: Packed | undefined;
}>;
type Packed = (held: number, folder: number, name: BytePath) => void;

/** Each folder on the way down is held by a descriptor. A path of 9,900 bytes has 900; real trees are not deeper. */
const DEEPEST = 2000;
/**
 * A file with this much of holes is written in GNU's sparse form; others are left in the form that every program can
 * read.
 */
const HOLES_BYTES = 64 * 1024 * 1024;
const SEGMENTS_MOST = 10_000;
const ZEROS = Buffer.alloc(64 * 1024);

/**
 * A tree of files as an archive, in the order of the names' bytes, in chunks from `fresh`. Sockets are left out.
 *
 * Others may change the tree meanwhile: every entry is held before it is looked at, links are never followed, nothing but
 * files is opened. What disappears is left out; a file that shrinks is filled up with zero bytes.
 *
 * With `rules` the tree is a writable layer, and the archive that of an image's layer.
 */
export function* pack(root: PackRoot, fresh: () => Buffer, how: How = {}): Generator<Buffer> {
  const packer = new Packer(fresh, how);
  yield* packer.entry(root.held, root.name, 0);
  yield* packer.write(TAR_END);
  yield* packer.rest();
}

class Packer {
  readonly #fresh: () => Buffer;
  readonly #seen = new Map<string, BytePath>();
  readonly #rules: Rules | undefined;
  readonly #choice: Choice | undefined;
  readonly #owners: Owners;
  readonly #attribute: Attribute;
  readonly #packed: Packed | undefined;
  /** Headers of folders that are only written with their content. */
  readonly #waiting: Buffer[] = [];
  #chunk: Buffer;
  #used = 0;

  constructor(
    fresh: () => Buffer,
    { rules, choice, owners = (stat) => stat, attribute = (_name, value) => value, packed }: How,
  ) {
    this.#fresh = fresh;
    this.#rules = rules;
    this.#choice = choice;
    this.#owners = owners;
    this.#attribute = attribute;
    this.#packed = packed;
    this.#chunk = fresh();
  }

  *entry(held: number, name: BytePath | undefined, depth: number): Generator<Buffer> {
    const stat = this.#owners(fstatSync(held));
    const type = entryTypeOf(stat.mode);
    if (type === undefined) return; // a socket has no form in an archive
    if (type === 'directory') yield* this.#folder(held, name, stat, depth);
    else if (name === undefined || this.#choice?.includes(name) === false) return;
    else if (this.#rules !== undefined && isWhiteout(stat)) yield* this.#header(whiteout(name, stat));
    else if (this.#rules?.isOwnFile(name, stat) !== true) yield* this.#other(held, name, type, stat);
  }

  *#header(entry: NewEntry): Generator<Buffer> {
    for (const waiting of this.#waiting.splice(0)) yield* this.write(waiting);
    yield* this.write(entryHeader(entry));
  }

  *write(bytes: Buffer): Generator<Buffer> {
    for (let at = 0; at < bytes.length;) {
      const copied = bytes.copy(this.#chunk, this.#used, at);
      at += copied;
      this.#used += copied;
      if (this.#used === this.#chunk.length) yield this.#take();
    }
  }

  *rest(): Generator<Buffer> {
    if (this.#used > 0) yield this.#take();
  }

  #take(): Buffer {
    const full = this.#chunk.subarray(0, this.#used);
    this.#chunk = this.#fresh();
    this.#used = 0;
    return full;
  }

  *#folder(held: number, name: BytePath | undefined, stat: Stats, depth: number): Generator<Buffer> {
    if (depth > DEEPEST) throw new EngineError('failed', `there are more than ${DEEPEST} folders in each other`);
    const inside = name === undefined || name.endsWith('/') ? (name ?? '') : `${name}/`;
    const entry: NewEntry = { ...common(held, stat, this.#attribute), path: inside, type: 'directory' };
    const isLeftOut = name !== undefined && this.#choice?.includes(name) === false;
    if (isLeftOut && !this.#choice.mayHold(name)) return;
    const waits = isLeftOut || (name !== undefined && this.#rules?.isOwnFolder(name, stat) === true);
    const waiting = this.#waiting.length;
    if (waits) this.#waiting.push(entryHeader(entry));
    else if (name !== undefined) yield* this.#header(entry);
    if (name !== undefined && this.#rules !== undefined && isOpaque(held))
      yield* this.#header(opaqueMark(inside, stat));
    for (const entry of namesIn(held)) {
      const inner = holdIfThere(held, entry);
      if (inner === undefined) continue;
      try {
        yield* this.entry(inner, `${inside}${entry}`, depth + 1);
        this.#packed?.(inner, held, entry);
      } finally {
        closeSync(inner);
      }
    }
    if (waits && this.#waiting.length > waiting) this.#waiting.length = waiting; // it was empty
  }

  *#other(held: number, path: BytePath, type: EntryType, stat: Stats): Generator<Buffer> {
    const first = stat.nlink > 1 ? this.#firstName(held, path) : undefined;
    if (first !== undefined) {
      yield* this.#header({ ...common(held, stat, undefined), path, type: 'link', linkPath: first });
    } else if (type === 'file') {
      yield* this.#file(held, path, stat);
    } else {
      yield* this.#header({ ...common(held, stat, this.#attribute), ...details(held, type, stat), path, type });
    }
  }

  /** The name under which this file is in the archive already. Inodes do not fit into Node's plain numbers. */
  #firstName(held: number, path: BytePath): BytePath | undefined {
    const { dev, ino } = fstatSync(held, { bigint: true });
    const file = `${dev}:${ino}`;
    const first = this.#seen.get(file);
    if (first === undefined) this.#seen.set(file, path);
    return first;
  }

  *#file(held: number, path: BytePath, stat: Stats): Generator<Buffer> {
    const { size: sizeBytes } = stat;
    const entry: NewEntry = { ...common(held, stat, this.#attribute), path, type: 'file', sizeBytes };
    if (sizeBytes === 0) {
      yield* this.#header(entry);
      return;
    }
    const fd = openHeld(held);
    try {
      const segments = segmentsOf(fd, stat);
      yield* this.#header({ ...entry, ...(segments !== undefined && { segments }) });
      let stored = 0;
      for (const { offset, bytes } of segments ?? [{ offset: 0, bytes: sizeBytes }]) {
        yield* this.#content(fd, offset, bytes);
        stored += bytes;
      }
      yield* this.#zeros(-stored & (BLOCK_BYTES - 1));
    } finally {
      closeSync(fd);
    }
  }

  *#content(fd: number, offset: number, bytes: number): Generator<Buffer> {
    for (let done = 0; done < bytes;) {
      const room = Math.min(this.#chunk.length - this.#used, bytes - done);
      const read = readSync(fd, this.#chunk, this.#used, room, offset + done);
      if (read === 0) {
        yield* this.#zeros(bytes - done);
        return;
      }
      done += read;
      this.#used += read;
      if (this.#used === this.#chunk.length) yield this.#take();
    }
  }

  *#zeros(bytes: number): Generator<Buffer> {
    for (let left = bytes; left > 0; left -= ZEROS.length) yield* this.write(ZEROS.subarray(0, left));
  }
}

function holdIfThere(folder: number, name: BytePath): number | undefined {
  try {
    return holdAt(folder, name);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Without `attribute` extended attributes are left out. */
function common(held: number, stat: Stats, attribute: Attribute | undefined): Omit<NewEntry, 'path' | 'type'> {
  return {
    mode: stat.mode & 0o7777,
    uid: stat.uid,
    gid: stat.gid,
    sizeBytes: 0,
    mtimeSeconds: Math.floor(stat.mtimeMs / 1000),
    xattrs: attribute === undefined ? [] : xattrsOf(held, stat.dev, attribute),
  };
}

function details(held: number, type: EntryType, { rdev }: Stats): Partial<NewEntry> {
  if (type === 'symlink') return { linkPath: targetOf(held) };
  if (type === 'fifo') return {};
  return { major: deviceMajor(BigInt(rdev)), minor: deviceMinor(BigInt(rdev)) };
}

/** The attributes of overlayfs and of this machine's security module stay out of archives. */
function xattrsOf(held: number, device: number, attribute: Attribute): (readonly [BytePath, Buffer])[] {
  const found: (readonly [BytePath, Buffer])[] = [];
  for (const name of xattrNamesOf(held)) {
    if (/^(?:trusted\.overlay|user\.overlay|security\.(?:selinux|ima|evm))/.test(name)) continue;
    const value = xattrOf(held, name);
    if (value !== undefined) found.push([name, attribute(name, value, device)]);
  }
  return found;
}

/** Undefined for a file that is written as it is. */
function segmentsOf(fd: number, { size, blocks }: Stats): Segment[] | undefined {
  if (size - blocks * 512 < HOLES_BYTES) return undefined;
  const segments: Segment[] = [];
  for (const segment of dataOf(fd, size)) {
    segments.push(segment);
    if (segments.length > SEGMENTS_MOST) return undefined;
  }
  // The format ends a map with the end of the file.
  if (segments.at(-1) === undefined || segments.at(-1)!.offset + segments.at(-1)!.bytes < size) {
    segments.push({ offset: size, bytes: 0 });
  }
  return segments;
}
