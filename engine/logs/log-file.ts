import { watch, type FSWatcher } from 'node:fs';
import { basename, dirname } from 'node:path';

import { hasCode } from '../lib/errors.ts';
import { LogFiles } from './files/files.ts';
import { LogLines, type LogSelection } from './log-line.ts';

export type LogQuery = LogSelection & Readonly<{ tail: number | 'all' }>;

/** A follow goes on until the container has exited (`ended`) or the client is gone (`signal`). */
export type Follow = Readonly<{ ended: Promise<unknown>; signal: AbortSignal }>;

/**
 * Reads a container's log from its json-file and the rotated files beside it (`.1` is the youngest, `.2.gz` a
 * compressed one).
 *
 * Yields large pieces of frames (or text) and reads on only when the last one was taken, so a slow client costs one
 * buffer. Only a follow sees lines that are written after the call.
 */
export async function* readLog(path: string, query: LogQuery, follow?: Follow): AsyncGenerator<Buffer> {
  using wake = follow && new Wake(path, follow);
  using files = new LogFiles(path);
  const lines = new LogLines(query);
  const first = await files.seekTail(query.tail);
  for (const file of files.from(first)) {
    const isLast = file === files.last;
    await file.ready();
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

/** Tells when there may be news: the folder changed (inotify), the container exited, the client left. */
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

/** Undefined if the folder is gone: the container was removed, so there is nothing to wait for. */
function watcherOf(folder: string, changed: (name: string | null) => void): FSWatcher | undefined {
  try {
    return watch(folder, { persistent: false }, (_event, name) => changed(name));
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}
