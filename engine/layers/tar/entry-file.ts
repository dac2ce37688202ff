import { closeSync, ftruncateSync, writeSync } from 'node:fs';

import { chownAt, createFileAt, setAttributes, setTimesAt, symlinkAt, type BytePath } from '../../host/files/openat.ts';
import { quotePath } from './entry-names.ts';
import { setXattrs } from './node-attributes.ts';
import { badArchive, type TarEntry } from './tar-header.ts';

type Owner = Readonly<{ uid: number; gid: number }>;

/** A new file that the content of an entry is written to. The open folder `directory` outlives it. */
export class EntryFile implements Disposable {
  readonly entry: TarEntry;
  readonly #directory: number;
  readonly #name: BytePath;
  readonly #owner: Owner;
  readonly #fd: number;
  #endBytes = 0;

  constructor(entry: TarEntry, directory: number, name: BytePath, owner: Owner = entry) {
    this.entry = entry;
    this.#directory = directory;
    this.#name = name;
    this.#owner = owner;
    this.#fd = createFileAt(directory, name);
  }

  write(chunk: Buffer, position: number): void {
    for (let written = 0; written < chunk.length;) {
      written += writeSync(this.#fd, chunk, written, chunk.length - written, position + written);
    }
    this.#endBytes = position + chunk.length;
  }

  /** Sets size and attributes when the content is complete, and closes the file. */
  finish(): void {
    const { mode, mtime, sizeBytes } = this.entry;
    const { uid, gid } = this.#owner;
    try {
      if (this.#endBytes !== sizeBytes) ftruncateSync(this.#fd, sizeBytes); // the hole at the end of a sparse file
      setAttributes(this.#fd, { uid, gid, mode, mtime });
      setXattrs(this.#directory, this.#name, this.entry);
    } finally {
      closeSync(this.#fd);
    }
  }

  /** Closes a file whose content did not end. */
  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }
}

/** Any target is allowed: neither a container nor an extraction follows it out of the root. */
export function makeSymlink(entry: TarEntry, directory: number, name: BytePath, owner: Owner = entry): void {
  if (entry.linkPath === '') throw badArchive(`the link ${quotePath(entry.path)} has no target`);
  symlinkAt(entry.linkPath, directory, name);
  chownAt(directory, name, owner.uid, owner.gid);
  setXattrs(directory, name, entry);
  setTimesAt(directory, name, entry.mtime);
}
