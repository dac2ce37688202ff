import { constants } from 'node:fs';
import { open, opendir, type FileHandle } from 'node:fs/promises';

const FOLDER_ITSELF = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** An entry of an open folder. Names are bytes: those that a container gives need not be UTF-8. */
export type Entry = Readonly<{ name: Buffer; isDirectory(): boolean }>;

/**
 * A folder of a tree that somebody else may write to, held open.
 *
 * Its entries are reached through the descriptor, so a path is never longer than one name, however deep the tree is, and
 * no folder that was exchanged for a link leads out of it.
 */
export class OpenFolder implements AsyncDisposable {
  readonly #handle: FileHandle;
  readonly #path: string;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
    this.#path = `/proc/self/fd/${handle.fd}`;
  }

  /** Throws `ENOTDIR` for anything else, also for a link. */
  static async open(path: string | Buffer): Promise<OpenFolder> {
    return new OpenFolder(await open(path, FOLDER_ITSELF));
  }

  async inner(name: Buffer): Promise<OpenFolder> {
    return await OpenFolder.open(this.pathOf(name));
  }

  pathOf(name: Buffer): Buffer {
    return Buffer.concat([Buffer.from(`${this.#path}/`), name]);
  }

  /** In no order. A folder may be as large as its owner likes: it is read piece by piece. */
  async *entries(): AsyncGenerator<Entry> {
    // The types know names as text only.
    yield* (await opendir(this.#path, { encoding: 'buffer' as BufferEncoding })) as unknown as AsyncIterable<Entry>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}
