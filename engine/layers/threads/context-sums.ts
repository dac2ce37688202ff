import { createHash, type Hash } from 'node:crypto';

import { readable } from '../../host/files/openat.ts';
import type { EntryType, TarEntry } from '../tar/tar-header.ts';
import type { TarSink } from '../tar/tar-reader.ts';
import type { ContextEntry } from './archive-messages.ts';

const FLAGS: Readonly<Record<EntryType, string>> = {
  file: '0',
  link: '1',
  symlink: '2',
  charDevice: '3',
  blockDevice: '4',
  directory: '5',
  fifo: '6',
};
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
  /** What the owners are called; empty for entries of archives. */
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
  add(`name${name}mode${fullMode}uid${uid}gid${gid}size${sizeBytes}typeflag${FLAGS[type]}linkname${linkPath}`);
  add(`uname${owners.user}gname${owners.group}devmajor${major}devminor${minor}`);
  for (const [key, value] of xattrs.toSorted(([a], [b]) => (a < b ? -1 : 1))) add(key).update(value);
  return hash;
}

/** Passes entries on, and computes their checksums. */
export class ContextSums implements TarSink {
  readonly #inner: TarSink;
  readonly #byPath = new Map<string, ContextEntry>();
  #current: { entry: TarEntry; hash: Hash } | undefined;

  constructor(inner: TarSink) {
    this.#inner = inner;
  }

  /** In the order of the archive; of two with one name the last. */
  get entries(): ContextEntry[] {
    return [...this.#byPath.values()];
  }

  begin(entry: TarEntry): void {
    this.#inner.begin(entry);
    const linkPath = entry.type === 'link' || entry.type === 'symlink' ? entry.linkPath : '';
    this.#current = { entry, hash: beginSum({ ...entry, name: entry.path, linkPath }) };
  }

  data(chunk: Buffer, position: number): void {
    this.#inner.data(chunk, position);
    this.#current?.hash.update(chunk);
  }

  finish(): void {
    this.#inner.finish();
    if (this.#current === undefined) return;
    const { entry, hash } = this.#current;
    this.#current = undefined;
    const path = cleaned(readable(entry.path));
    if (path === '') return;
    const target = entry.type === 'symlink' ? readable(entry.linkPath) : '';
    this.#byPath.delete(path);
    this.#byPath.set(path, { path, type: TYPES[entry.type], sum: hash.digest('hex'), target });
  }
}

function cleaned(path: string): string {
  return path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');
}
