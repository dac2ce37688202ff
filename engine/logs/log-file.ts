import { closeSync, fstatSync, openSync, read, statSync, watch, type FSWatcher } from 'node:fs';
import { basename, dirname } from 'node:path';

import { hasCode } from '../lib/errors.ts';
import { LogLines, type LogSelection } from './log-line.ts';

export type LogQuery = LogSelection & Readonly<{ tail: number | 'all' }>;

/** A follow goes on until the container has exited (`ended`) or the client is gone (`signal`). */
export type Follow = Readonly<{ ended: Promise<unknown>; signal: AbortSignal }>;

const CHUNK_BYTES = 512 * 1024;
/** Enough for 100 usual lines: a short tail then costs one read. */
const TAIL_BYTES = 16 * 1024;
const NEWLINE = 0x0a;

/**
 * Reads a container's log from its json-file and the rotated files beside it (`.1` is the youngest).
 *
 * Yields large pieces of frames (or text) and reads on only when the last one was taken, so a slow client costs one
 * buffer. What is written after the call is only seen by a follow.
 */
export async function* readLog(path: string, query: LogQuery, follow?: Follow): AsyncGenerator<Buffer> {
  using wake = follow && new Wake(path, follow);
  using files = new LogFiles(path);
  const lines = new LogLines(query);
  const first = await files.seekTail(query.tail);
  for (const file of files.from(first)) {
    const isLast = file === files.last;
    yield* file.drain(lines, isLast && follow !== undefined ? Infinity : file.size);
    if (lines.ended) return;
  }
  if (wake !== undefined) yield* followFrom(path, files, lines, wake);
}

/** New lines as they are written, across rotations: nothing is lost between two files, and nothing comes twice. */
async function* followFrom(path: string, files: LogFiles, lines: LogLines, wake: Wake): AsyncGenerator<Buffer> {
  while (!wake.aborted && !lines.ended) {
    const { ended } = wake; // read before the files: what was written until then is delivered below
    wake.reset();
    const current = files.last;
    if (current === undefined) {
      if (!files.openNewer(path) && ended) return;
    } else {
      // The file gets its new name before the next one is created: seen first, the old one cannot grow any more.
      const rotated = files.isRotated(path);
      yield* current.drain(lines, Infinity);
      if (rotated && files.openNewer(path)) continue;
      if (ended) return;
    }
    if (!wake.aborted) await wake.next();
  }
}

/** One open file of the log; it stays readable when it is renamed or removed meanwhile. */
class LogFile implements Disposable {
  readonly #descriptor: number;
  readonly inode: number;
  /** At the time of opening. */
  readonly size: number;
  #position = 0;
  #rest: Buffer = Buffer.alloc(0);

  constructor(path: string) {
    this.#descriptor = openSync(path, 'r');
    const { ino, size } = fstatSync(this.#descriptor);
    this.inode = ino;
    this.size = size;
  }

  async *drain(lines: LogLines, limit: number): AsyncGenerator<Buffer> {
    for (;;) {
      if (limit === Infinity) this.#restartWhenTruncated();
      const wanted = Math.min(CHUNK_BYTES, limit - this.#position);
      if (wanted <= 0) return;
      const chunk = Buffer.allocUnsafe(this.#rest.length + Math.min(wanted, this.#expected()));
      this.#rest.copy(chunk);
      const bytes = await readAt(this.#descriptor, chunk, this.#rest.length, this.#position);
      if (bytes === 0) return;
      this.#position += bytes;
      const data = chunk.subarray(0, this.#rest.length + bytes);
      const { rest, frames } = lines.decode(data, 0);
      this.#rest = data.subarray(rest);
      if (frames.length > 0) yield frames;
      if (lines.ended) return;
    }
  }

  /** Moves to the start of the last `count` lines; returns how many of them are not in this file. */
  async seekBack(count: number): Promise<number> {
    let missing = count;
    let from = this.size;
    let blockBytes = TAIL_BYTES;
    let isEnd = true;
    while (from > 0) {
      const length = Math.min(blockBytes, from);
      from -= length;
      const block = Buffer.allocUnsafe(length);
      await readAt(this.#descriptor, block, 0, from);
      let at = length;
      // The newline of the last line ends it; every one before is the start of a wanted line.
      while ((at = at === 0 ? -1 : block.lastIndexOf(NEWLINE, at - 1)) !== -1) {
        if (isEnd) {
          isEnd = false;
          continue;
        }
        missing -= 1;
        if (missing === 0) {
          this.#position = from + at + 1;
          return 0;
        }
      }
      blockBytes = Math.min(2 * blockBytes, CHUNK_BYTES);
    }
    this.#position = 0;
    return isEnd ? missing : missing - 1;
  }

  seekEnd(): void {
    this.#position = this.size;
  }

  /** The shim replaces a rotated file, but an operator or a tool may truncate it: then reading starts over. */
  #restartWhenTruncated(): void {
    if (fstatSync(this.#descriptor).size >= this.#position) return;
    this.#position = 0;
    this.#rest = Buffer.alloc(0);
  }

  /** Bytes worth a buffer: what is there, and a little for what comes meanwhile. */
  #expected(): number {
    return Math.max(fstatSync(this.#descriptor).size - this.#position, 4096);
  }

  [Symbol.dispose](): void {
    closeSync(this.#descriptor);
  }
}

/** The files of one log, oldest first. */
class LogFiles implements Disposable {
  readonly #files: LogFile[] = [];

  constructor(path: string) {
    for (let index = 0; ; index += 1) {
      const file = tryOpen(index === 0 ? path : `${path}.${index}`);
      if (file === undefined) {
        if (index > 0) break;
        continue; // between two steps of a rotation only the rotated ones are there
      }
      // A rotation while they are opened shows one of them again under its next name.
      if (this.#files.some((known) => known.inode === file.inode)) file[Symbol.dispose]();
      else this.#files.unshift(file);
    }
  }

  get last(): LogFile | undefined {
    return this.#files.at(-1);
  }

  from(index: number): readonly LogFile[] {
    return this.#files.slice(index);
  }

  /** Finds the file in which the last lines begin, and moves each file to its own start. */
  async seekTail(tail: number | 'all'): Promise<number> {
    if (tail === 'all') return 0;
    if (tail === 0) this.last?.seekEnd();
    let missing = tail;
    let index = this.#files.length;
    while (missing > 0 && index > 0) {
      index -= 1;
      missing = (await this.#files[index]?.seekBack(missing)) ?? 0;
    }
    return Math.min(index, Math.max(this.#files.length - 1, 0));
  }

  isRotated(path: string): boolean {
    const inode = inodeOf(path);
    return inode !== undefined && inode !== this.last?.inode;
  }

  /** Adds the file that was begun after the last one. Several rotations may have happened: each file has its turn. */
  openNewer(path: string): boolean {
    let newer: LogFile | undefined;
    for (let index = 0; ; index += 1) {
      const file = tryOpen(index === 0 ? path : `${path}.${index}`);
      if (file === undefined) {
        if (index > 0) break;
        continue;
      }
      if (file.inode === this.last?.inode) {
        file[Symbol.dispose]();
        break;
      }
      newer?.[Symbol.dispose]();
      newer = file;
    }
    if (newer === undefined) return false;
    this.#files.push(newer);
    for (const old of this.#files.splice(0, this.#files.length - 1)) old[Symbol.dispose]();
    return true;
  }

  [Symbol.dispose](): void {
    for (const file of this.#files.splice(0)) file[Symbol.dispose]();
  }
}

/** Says when there may be something new: the folder changed (inotify), the container exited, the client left. */
class Wake implements Disposable {
  ended = false;
  aborted = false;
  #next = Promise.withResolvers<void>();
  readonly #watcher;
  readonly #signal: AbortSignal;

  constructor(path: string, { ended, signal }: Follow) {
    const name = basename(path);
    this.#signal = signal;
    // The folder and not the file: a rotation replaces the file.
    this.#watcher = watcherOf(dirname(path), (changed) => {
      if (changed === null || changed.startsWith(name)) this.#wake();
    });
    this.#watcher?.on('error', () => this.#wake());
    this.ended = this.#watcher === undefined;
    this.aborted = signal.aborted;
    signal.addEventListener('abort', this.#abort, { once: true });
    const end = (): void => {
      this.ended = true;
      this.#wake();
    };
    void ended.then(end, end);
  }

  reset(): void {
    this.#next = Promise.withResolvers();
  }

  async next(): Promise<void> {
    return await this.#next.promise;
  }

  #wake(): void {
    this.#next.resolve();
  }

  readonly #abort = (): void => {
    this.aborted = true;
    this.#wake();
  };

  [Symbol.dispose](): void {
    this.#watcher?.close();
    this.#signal.removeEventListener('abort', this.#abort);
  }
}

/** Undefined where the folder has gone: the container is removed, and there is nothing to wait for. */
function watcherOf(folder: string, changed: (name: string | null) => void): FSWatcher | undefined {
  try {
    return watch(folder, { persistent: false }, (_event, name) => changed(name));
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function tryOpen(path: string): LogFile | undefined {
  try {
    return new LogFile(path);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

function inodeOf(path: string): number | undefined {
  return statSync(path, { throwIfNoEntry: false })?.ino;
}

/** The callback form: a promise of `node:fs/promises` costs twice as much, which a short tail would feel. */
async function readAt(descriptor: number, buffer: Buffer, offset: number, position: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  read(descriptor, buffer, offset, buffer.length - offset, position, (error, bytes) => {
    if (error) reject(error);
    else resolve(bytes);
  });
  return await promise;
}
