import { createHash, type Hash } from 'node:crypto';

import { readable, type BytePath } from '../../host/files/openat.ts';
import { EntryPlaces } from '../tar/entry-places.ts';
import { TYPE_FLAGS, type EntryType, type TarEntry } from '../tar/tar-header.ts';
import type { TarSink } from '../tar/tar-reader.ts';
import type { ContextEntry } from './archive-messages.ts';

const TYPES: Readonly<Record<EntryType, ContextEntry['type']>> = {
  file: 'file',
  link: 'file',
  symlink: 'link',
  charDevice: 'other',
  blockDevice: 'other',
  directory: 'folder',
  fifo: 'other',
};

type Sum = Pick<TarEntry, 'fullMode' | 'uid' | 'gid' | 'linkPath' | 'major' | 'minor' | 'xattrs'> & {
  name: string;
  type: EntryType;
  sizeBytes: number;
  /** The names of the owners; empty for entries of archives. */
  owners?: Readonly<{ user: string; group: string }>;
};

const NAMELESS = { user: '', group: '' };

/**
 * The checksum of an entry without its content, as docker's builder has it (its "tarsum", version 1): everything but the
 * times and the names of the owners.
 */
export function beginSum(entry: Sum): Hash {
  const { name, type, fullMode, uid, gid, sizeBytes, linkPath, major, minor, xattrs, owners = NAMELESS } = entry;
  const hash = createHash('sha256');
  const add = (text: string): Hash => hash.update(text, 'latin1');
  add(`name${name}mode${fullMode}uid${uid}gid${gid}size${sizeBytes}typeflag${TYPE_FLAGS[type]}linkname${linkPath}`);
  add(`uname${owners.user}gname${owners.group}devmajor${major}devminor${minor}`);
  for (const [key, value] of xattrs.toSorted(([a], [b]) => (a < b ? -1 : 1))) add(key).update(value);
  return hash;
}

type Current = {
  entry: TarEntry;
  path: BytePath;
  target: BytePath;
  hash: Hash;
  /** The beginning of its content, and the length of the piece there. */
  offset: number;
  bytes: number;
};

/** The entries of a context with their checksums, and where in its plain archive their content is. */
export class ContextSums implements TarSink {
  readonly #take: (entry: ContextEntry) => void;
  readonly #places = new EntryPlaces();
  #current: Current | undefined;
  #chunk: Buffer = Buffer.alloc(0);
  /** The chunk's position in the archive. */
  #offset: number;

  /**
   * `take` gets the entries in the order of the archive; of two with one name the last one counts. `offset`: the position of the
   * archive in its file.
   */
  constructor(take: (entry: ContextEntry) => void, offset = 0) {
    this.#take = take;
    this.#offset = offset;
  }

  /** Passes a chunk of the archive to its reader, which calls this sink for parts of this very memory. */
  through(chunk: Buffer, push: (chunk: Buffer) => void): void {
    this.#chunk = chunk;
    push(chunk);
    this.#offset += chunk.length; // now: the memory of a chunk is freed when the next one is asked for
  }

  begin(entry: TarEntry): void {
    const isLink = entry.type === 'link' || entry.type === 'symlink';
    const linkPath = isLink ? entry.linkPath : '';
    const target = entry.type === 'symlink' ? entry.linkPath : this.#places.targetOf(entry);
    const path = this.#places.next(entry);
    const hash = beginSum({ ...entry, name: entry.path, linkPath });
    this.#current = { entry, path, target, hash, offset: 0, bytes: 0 };
  }

  data(part: Buffer, position: number): void {
    const current = this.#current!;
    current.hash.update(part);
    if (position === 0) current.offset = this.#offset + part.byteOffset - this.#chunk.byteOffset;
    if (position === current.bytes) current.bytes += part.length; // otherwise a hole precedes it
  }

  finish(): void {
    const { entry, path, target, hash, offset, bytes } = this.#current!;
    if (path === '') return;
    const isWhole = entry.type === 'file' && bytes === entry.sizeBytes;
    this.#take({
      path: readable(path),
      type: TYPES[entry.type],
      sum: hash.digest('hex'),
      target: readable(target),
      ...(isWhole && { content: { offset, bytes } }),
    });
  }
}
