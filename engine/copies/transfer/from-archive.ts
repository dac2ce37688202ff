import type { BytePath, Timespec } from '../../host/files/openat.ts';
import { EntryPlaces } from '../../layers/tar/entry-places.ts';
import type { TarEntry } from '../../layers/tar/tar-header.ts';
import { TarReader, type TarSink } from '../../layers/tar/tar-reader.ts';
import { chunksOf } from '../../layers/threads/plain-archive.ts';
import { Placer } from '../place.ts';
import type { View } from '../view.ts';
import {
  baseOf,
  bytesOf,
  filePlace,
  LIMITS,
  makeFolder,
  setFolderTime,
  withMode,
  type Pause,
  type Transfer,
} from './transfer.ts';

/** Files of an archive that nobody has extracted. */
export type Archived = Readonly<{
  /** An open file with the plain archive, whose folders come before their content, and no name twice. */
  fd: number;
  /** A bit for each entry that is left out, in their order. */
  without: Uint8Array<ArrayBuffer> | undefined;
  /** The places of the files to copy, or that of one folder; `name` is the one to copy under, as its source is written. */
  files: readonly Readonly<{ path: string; name: string }>[];
  isFolder: boolean;
}>;

export type ArchivedTransfer = Omit<Transfer, 'from' | 'paths' | 'excluded' | 'extracts'>;

/** Like `transfer`, in one pass through the archive. */
export async function transferFromArchive(
  archived: Archived,
  target: View,
  work: ArchivedTransfer,
  pause: Pause,
): Promise<void> {
  const { destination, owner, mode, isBuildkit = false } = work;
  const { place, nameOf } = archived.isFolder ? folderPlace(target, work) : filesPlace(archived, target, work);
  using placer = new Placer(target, { path: place, keepsKinds: isBuildkit, ...(owner !== undefined && { owner }) });
  const chosen = new ChosenEntries(archived, mode === undefined ? placer : withMode(placer, mode), nameOf);
  const reader = new TarReader(chosen, LIMITS);
  for await (const chunk of chunksOf(archived.fd)) {
    reader.push(chunk);
    await pause();
  }
  reader.end();
  placer.complete();
  if (isBuildkit && chosen.folderTime !== undefined) setFolderTime(target, destination, chosen.folderTime);
}

type Place = Readonly<{ place: string; nameOf: (name: BytePath) => BytePath }>;

function folderPlace(target: View, { destination, owner }: ArchivedTransfer): Place {
  makeFolder(target, `${destination}/..`);
  makeFolder(target, destination, owner);
  return { place: destination, nameOf: (name) => name };
}

function filesPlace({ files }: Archived, target: View, { destination, owner }: ArchivedTransfer): Place {
  const { place, name } = filePlace(target, destination, owner);
  const names = new Map(files.map((file) => [bytesOf(file.path), baseOf(file.name)]));
  return { place, nameOf: (path) => name ?? names.get(path)! };
}

/** Passes entries of the chosen files on, under their new names. */
class ChosenEntries implements TarSink {
  /** The time of the copied folder itself, if the archive has an entry for it. */
  folderTime: Timespec | undefined;
  readonly #sink: TarSink;
  readonly #without: Uint8Array | undefined;
  readonly #nameOf: (path: BytePath) => BytePath;
  readonly #places = new EntryPlaces();
  readonly #files: ReadonlySet<BytePath>;
  /** Undefined: files are copied. */
  readonly #folder: BytePath | undefined;
  #next = 0;
  #isTaken = false;

  constructor({ files, isFolder, without }: Archived, sink: TarSink, nameOf: (path: BytePath) => BytePath) {
    this.#sink = sink;
    this.#without = without;
    this.#nameOf = nameOf;
    this.#files = new Set(files.map(({ path }) => bytesOf(path)));
    this.#folder = isFolder ? bytesOf(files[0]!.path) : undefined;
  }

  begin(entry: TarEntry): void {
    const path = this.#places.next(entry);
    const name = path === '' || this.#isLeft() ? undefined : this.#newName(path, entry);
    this.#isTaken = name !== undefined;
    if (name !== undefined) this.#sink.begin({ ...entry, path: name });
  }

  data(chunk: Buffer, position: number): void {
    if (this.#isTaken) this.#sink.data(chunk, position);
  }

  finish(): void {
    if (this.#isTaken) this.#sink.finish();
  }

  #isLeft(): boolean {
    const number = this.#next;
    this.#next += 1;
    return ((this.#without?.[number >> 3] ?? 0) & (1 << (number & 7))) !== 0;
  }

  #newName(path: BytePath, entry: TarEntry): BytePath | undefined {
    if (this.#folder === undefined) return this.#files.has(path) ? this.#nameOf(path) : undefined;
    if (this.#folder === '') return path;
    if (path === this.#folder) this.folderTime = entry.mtime;
    return path.startsWith(`${this.#folder}/`) ? path.slice(this.#folder.length + 1) : undefined;
  }
}
