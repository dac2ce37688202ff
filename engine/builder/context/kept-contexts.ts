import {
  constants,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { copyFile, open, readFile, writeFile, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

import type { Config } from '../../config/daemon-config.ts';
import { filesystemOf } from '../../host/files/statfs.ts';
import { sha256 } from '../../layers/chain-id.ts';
import { hasCode } from '../../lib/errors.ts';
import { namesIn } from '../../lib/folders.ts';
import { newId } from '../../lib/ids.ts';
import { Trash } from '../../trees/trash.ts';

type Needs = {
  live: { current: Pick<Config, 'dataRoot' | 'buildCacheBytes'> };
  log: { warn(details: object, message: string): void };
};

/** A context on the disk, as `list` shows it. */
export type ListedContext = Readonly<{
  id: string;
  bytes: number;
  createdAt: Temporal.Instant;
  usedAt: Temporal.Instant;
}>;

/** An open context: its archive, and what its keeper wrote beside it. */
export type KeptContext = AsyncDisposable &
  Readonly<{
    archive: FileHandle;
    index: Buffer;
    /** Gives both files of the context these names; false if it was removed meanwhile. */
    link: (files: ContextFiles) => boolean;
    /** Copies both files there, to be changed; false if it was removed meanwhile. */
    copy: (files: ContextFiles) => Promise<boolean>;
  }>;

/** Files of a context that nobody changes: its archive, and its entries with their checksums. */
export type ContextFiles = Readonly<{ archive: string; entries: string }>;

const MAX_CONTEXTS = 64;
const TRASH = '.trash';
const [ARCHIVE, INDEX, ENTRIES] = ['context.tar', 'index', 'entries'];
/** Files of an earlier boot may lack what the kernel had not written when the power failed. */
const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/**
 * Contexts of earlier builds, so that their clients send changed files alone. Each is a folder `<name>.<id>` that appears and
 * disappears whole: builds at the same time read the one that they found. The least recently used are removed.
 */
export class KeptContexts implements AsyncDisposable {
  readonly #live: Needs['live'];
  readonly #log: Needs['log'];
  readonly #boot = readFileSync(BOOT_ID, 'utf8').trim();
  #trash: Trash | undefined;

  constructor({ live, log }: Needs) {
    this.#live = live;
    this.#log = log;
  }

  /** The newest context under this key; undefined if there is none. */
  async open(key: string): Promise<KeptContext | undefined> {
    const [newest] = this.#foldersOf(this.#nameOf(key));
    if (newest === undefined) return undefined;
    try {
      await using undo = new AsyncDisposableStack();
      const archive = undo.use(await open(join(this.#folder, newest, ARCHIVE), 'r'));
      const index = await readFile(join(this.#folder, newest, INDEX));
      const now = new Date();
      utimesSync(join(this.#folder, newest), now, now);
      const parts = undo.move();
      const link = (files: ContextFiles): boolean => linkedFrom(join(this.#folder, newest), files);
      const copy = async (files: ContextFiles): Promise<boolean> => await copiedFrom(join(this.#folder, newest), files);
      return { archive, index, link, copy, [Symbol.asyncDispose]: async () => await parts.disposeAsync() };
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined; // it was replaced or removed meanwhile
      throw error;
    }
  }

  /** Replaces the context under this key by links to these files. A failure leaves none behind. */
  async keep(key: string, { archive, entries }: ContextFiles, index: Buffer): Promise<void> {
    const size = statSync(archive).size + statSync(entries).size;
    const { buildCacheBytes, dataRoot } = this.#live.current;
    if (size + index.length > buildCacheBytes) return;
    if (filesystemOf(dataRoot).freeBytes < size) return; // a disk that is nearly full has better uses for it
    const trash = this.#openTrash();
    const id = newId();
    // In the trash, so that it is removed with it if the daemon is killed now.
    const made = join(this.#folder, TRASH, `new-${id}`);
    const name = this.#nameOf(key);
    const kept = `${name}.${id}`;
    try {
      mkdirSync(made, { mode: 0o700 });
      linkSync(archive, join(made, ARCHIVE));
      linkSync(entries, join(made, ENTRIES));
      await writeFile(join(made, INDEX), index, { mode: 0o600, flag: 'wx' });
      const earlier = this.#foldersOf(name);
      renameSync(made, join(this.#folder, kept));
      for (const each of earlier) trash.take(join(this.#folder, each));
    } catch (error) {
      trash.take(made);
      this.#log.warn({ err: error }, 'the context of a build is not kept: the next build transfers all of it');
    }
    this.#trim(kept);
  }

  list(): ListedContext[] {
    return this.#folders().flatMap((id) => this.#listed(id) ?? []);
  }

  /** Removes contexts that match, the least recently used first, until so many bytes are free. Builds go on reading theirs. */
  prune(wantedBytes: number, matches: (context: ListedContext) => boolean): { ids: string[]; bytes: number } {
    const pruned: { ids: string[]; bytes: number } = { ids: [], bytes: 0 };
    for (const context of this.list().toSorted((a, b) => Temporal.Instant.compare(a.usedAt, b.usedAt))) {
      if (pruned.bytes >= wantedBytes) break;
      if (!matches(context)) continue;
      this.#remove(context.id);
      pruned.ids.push(context.id);
      pruned.bytes += context.bytes;
    }
    return pruned;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#trash?.[Symbol.asyncDispose]();
  }

  get #folder(): string {
    return join(this.#live.current.dataRoot, 'build-contexts');
  }

  #nameOf(key: string): string {
    return sha256(`${this.#boot}\0${key}`).replace('sha256:', '');
  }

  #folders(): string[] {
    return namesIn(this.#folder).filter((name) => name !== TRASH);
  }

  /** The newest first. */
  #foldersOf(name: string): string[] {
    const found = this.#folders().filter((each) => each.startsWith(`${name}.`));
    if (found.length < 2) return found;
    const listed = found.flatMap((id) => this.#listed(id) ?? []);
    return listed.toSorted((a, b) => Temporal.Instant.compare(b.createdAt, a.createdAt)).map(({ id }) => id);
  }

  #listed(id: string): ListedContext | undefined {
    try {
      const folder = statSync(join(this.#folder, id));
      const names = [ARCHIVE, INDEX, ...(existsSync(join(this.#folder, id, ENTRIES)) ? [ENTRIES] : [])];
      const files = names.map((each) => statSync(join(this.#folder, id, each)));
      return {
        id,
        bytes: files.reduce((sum, { blocks }) => sum + blocks * 512, 0),
        createdAt: instantOf(files[1]!.mtimeMs),
        usedAt: instantOf(folder.mtimeMs),
      };
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return undefined; // it has just been removed
      throw error;
    }
  }

  /** Removes the least recently used beyond the limits, but not this one. */
  #trim(newest: string): void {
    const all = this.list().toSorted((a, b) => Temporal.Instant.compare(a.usedAt, b.usedAt));
    let bytes = all.reduce((sum, each) => sum + each.bytes, 0);
    let count = all.length;
    for (const each of all) {
      if (count <= MAX_CONTEXTS && bytes <= this.#live.current.buildCacheBytes) return;
      if (each.id === newest) continue;
      this.#remove(each.id);
      count -= 1;
      bytes -= each.bytes;
    }
  }

  #remove(id: string): void {
    this.#openTrash().take(join(this.#folder, id));
  }

  #openTrash(): Trash {
    return (this.#trash ??= new Trash(join(this.#folder, TRASH), (error, path) =>
      this.#log.warn({ err: error, path }, 'a removed context of a build is still there; the next removal tries again'),
    ));
  }
}

function linkedFrom(folder: string, { archive, entries }: ContextFiles): boolean {
  try {
    linkSync(join(folder, ENTRIES), entries);
    linkSync(join(folder, ARCHIVE), archive);
    return true;
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
    rmSync(entries, { force: true });
    return false;
  }
}

async function copiedFrom(folder: string, { archive, entries }: ContextFiles): Promise<boolean> {
  try {
    await copyFile(join(folder, ENTRIES), entries, constants.COPYFILE_FICLONE);
    await copyFile(join(folder, ARCHIVE), archive, constants.COPYFILE_FICLONE);
    return true;
  } catch (error) {
    for (const file of [archive, entries]) rmSync(file, { force: true });
    if (!hasCode(error, 'ENOENT')) throw error;
    return false;
  }
}

function instantOf(milliseconds: number): Temporal.Instant {
  return Temporal.Instant.fromEpochMilliseconds(Math.floor(milliseconds));
}
