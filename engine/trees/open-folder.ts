import { constants } from 'node:fs';
import { open, opendir, type FileHandle } from 'node:fs/promises';

const FOLDER_ITSELF = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** An entry of an open folder. Names are bytes, because a container's need not be UTF-8. */
export type Entry = Readonly<{ name: Buffer; isDirectory(): boolean }>;

/**
 * An open folder of a tree that others may change meanwhile.
 *
 * Entries are reached through the descriptor. So a path is never longer than one name, however deep the tree is, and a
 * folder that was replaced by a link leads nowhere.
 */
export class OpenFolder implements AsyncDisposable {
  readonly #handle: FileHandle;
  readonly #path: string;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
    this.#path = `/proc/self/fd/${handle.fd}`;
  }

  /** Throws `ENOTDIR` for anything but a folder, links included. */
  static async open(path: string | Buffer): Promise<OpenFolder> {
    return new OpenFolder(await open(path, FOLDER_ITSELF));
  }

  async inner(name: Buffer): Promise<OpenFolder> {
    return await OpenFolder.open(this.pathOf(name));
  }

  pathOf(name: Buffer): Buffer {
    return Buffer.concat([Buffer.from(`${this.#path}/`), name]);
  }

  /** The entries, in no order. Read piece by piece, because a folder can be of any size. */
  async *entries(): AsyncGenerator<Entry> {
    // Node's types have names as text only.
    yield* (await opendir(this.#path, { encoding: 'buffer' as BufferEncoding })) as unknown as AsyncIterable<Entry>;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }
}
