import { mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';

import { hasCode } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import { removeTree } from './remove.ts';

/**
 * Removes folders in two steps: a rename, after which nobody finds the folder any more, then the slow part in the
 * background. What a crash leaves in between is found again by its place.
 */
export class Trash implements AsyncDisposable {
  readonly #directory: string;
  readonly #onFailure: (error: unknown, path: string) => void;
  readonly #stopping = new AbortController();
  #work: Promise<void> = Promise.resolve();

  /** `directory` has to be on the same mount as what is thrown away; `onFailure` hears of what cannot be removed. */
  constructor(directory: string, onFailure: (error: unknown, path: string) => void) {
    this.#directory = directory;
    this.#onFailure = onFailure;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(directory)) this.#removeLater(join(directory, name));
  }

  /**
   * Returns when `path` is gone from its place; one that is not there is fine. `forget` then removes what is known of it:
   * when that throws, everything is where it was.
   */
  take(path: string, forget: () => void = () => undefined): void {
    const place = join(this.#directory, newId());
    const isThere = moved(path, place);
    try {
      forget();
    } catch (error) {
      if (isThere) renameSync(place, path);
      throw error;
    }
    if (isThere) this.#removeLater(place);
  }

  /** Resolves when everything that was thrown away so far is removed. */
  async emptied(): Promise<void> {
    await this.#work;
  }

  /** Stops in the middle: what is left is found again by the next one. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping.abort();
    await this.#work;
  }

  /** One tree after the other: removing many at once would only make the disk slower for everybody else. */
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

/** Whether there was something to move. */
function moved(from: string, to: string): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}
