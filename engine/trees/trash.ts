import { mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';

import { hasCode } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import { removeTree } from './remove.ts';

/**
 * Removes folders in two steps: a rename, which hides the folder at once, then the slow removal in the background.
 * After a crash in between, the next daemon finds the renamed folder and goes on.
 */
export class Trash implements AsyncDisposable {
  readonly #directory: string;
  readonly #onFailure: (error: unknown, path: string) => void;
  readonly #stopping = new AbortController();
  #work: Promise<void> = Promise.resolve();

  /**
   * `directory` has to be on the same mount as the folders to remove; `onFailure` is called for each that cannot be
   * removed.
   */
  constructor(directory: string, onFailure: (error: unknown, path: string) => void) {
    this.#directory = directory;
    this.#onFailure = onFailure;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(directory)) this.#removeLater(join(directory, name));
  }

  /**
   * Returns when `path` has been renamed; a missing one is not an error. `forget` then removes its record: when that
   * throws, the rename is undone.
   */
  take(path: string, forget: () => void = () => undefined): void {
    const place = join(this.#directory, newId());
    const isThere = moveIfExists(path, place);
    try {
      forget();
    } catch (error) {
      if (isThere) renameSync(place, path);
      throw error;
    }
    if (isThere) this.#removeLater(place);
  }

  /** Resolves when everything in the trash so far has been removed. */
  async emptied(): Promise<void> {
    await this.#work;
  }

  /** Stops in the middle: the next daemon goes on with the rest. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#work;
  }

  /** One tree after the other: removing several at once would only slow down the disk. */
  #removeLater(path: string): void {
    this.#work = this.#removeAfter(this.#work, path);
  }

  async #removeAfter(before: Promise<void>, path: string): Promise<void> {
    await before;
    const { signal } = this.#stopping;
    if (signal.aborted) return;
    try {
      await removeTree(path, signal);
    } catch (error) {
      if (!signal.aborted) this.#onFailure(error, path);
    }
  }
}

/** Returns whether `path` existed. */
function moveIfExists(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}
