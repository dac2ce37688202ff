import { join } from 'node:path';

import { readable, type BytePath } from '../../host/files/openat.ts';
import { innerPath } from '../tar/entry-names.ts';
import { joinPath, splitPath } from '../tar/extracted-folders.ts';
import { badArchive, type TarEntry } from '../tar/tar-header.ts';
import type { TarSink } from '../tar/tar-reader.ts';
import type { Unpacked } from './archive-messages.ts';
import { FileWriter } from './file-writer.ts';

/**
 * Writes the files of an image archive into a folder under numbers, so that names of the archive have no effect on the
 * disk. Links are remembered; other kinds are ignored.
 */
export class Unpacker implements TarSink, Disposable {
  readonly found: Unpacked[] = [];
  readonly #directory: string;
  #current: { path: string; file: string; writer: FileWriter } | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  begin(entry: TarEntry): void {
    const inner = innerPath(entry.path, 'the name');
    const path = readable(inner);
    if (entry.type === 'file') {
      const file = join(this.#directory, String(this.found.length));
      this.#current = { path, file, writer: new FileWriter(file) };
    } else if (entry.type === 'link' || entry.type === 'symlink') {
      this.found.push({ path, kind: 'link', target: targetOf(entry, inner) });
    }
  }

  data(chunk: Buffer, position: number): void {
    const writer = this.#current?.writer;
    if (writer === undefined) return;
    if (position !== writer.sizeBytes) throw badArchive('a file of an image archive is sparse');
    writer.write(chunk, position);
  }

  finish(): void {
    if (this.#current === undefined) return;
    const { path, file, writer } = this.#current;
    this.#current = undefined;
    using _writer = writer;
    this.found.push({ path, kind: 'file', file, digest: writer.digest(), sizeBytes: writer.sizeBytes });
  }

  [Symbol.dispose](): void {
    this.#current?.writer[Symbol.dispose]();
  }
}

/** Old archives share a layer between two folders by a link. */
function targetOf({ type, linkPath }: TarEntry, path: BytePath): string {
  const isFromRoot = type === 'link' || linkPath.startsWith('/');
  const target = isFromRoot ? linkPath : joinPath(splitPath(path)[0], linkPath);
  return readable(innerPath(target, 'the link'));
}
