import { existsSync, linkSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { EngineError, hasCode } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import type { SetAside } from '../trees/set-aside.ts';

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * Layer archives by their digest, so that a later save or push gives the same bytes: whole, as received, or as a skeleton
 * that gives the archive together with the layer's files.
 *
 * A file appears whole (written beside, synced, renamed) and never changes.
 */
export class Blobs {
  readonly #whole: string;
  readonly #skeletons: string;
  readonly #arriving: string;
  /** Skeletons whose bytes may not be on the disk yet. */
  readonly #unsynced = new Set<string>();

  constructor(dataRoot: string) {
    this.#whole = join(dataRoot, 'blobs', 'sha256');
    this.#skeletons = join(dataRoot, 'blobs', 'skeletons');
    this.#arriving = join(dataRoot, 'blobs', 'arriving');
    for (const folder of [this.#whole, this.#skeletons]) mkdirSync(folder, { recursive: true, mode: 0o700 });
    // Uploads that were interrupted by the daemon's death cannot continue.
    rmSync(this.#arriving, { recursive: true, force: true });
    mkdirSync(this.#arriving, { mode: 0o700 });
  }

  /** The path of an archive that is kept whole. */
  path(digest: string): string {
    return join(this.#whole, nameOf(digest));
  }

  /** Path of a skeleton. */
  skeletonPath(digest: string): string {
    return join(this.#skeletons, nameOf(digest));
  }

  has(digest: string): boolean {
    return this.isWhole(digest) || existsSync(this.skeletonPath(digest));
  }

  isWhole(digest: string): boolean {
    return existsSync(this.path(digest));
  }

  /** A folder for incoming files; disposing removes it with every file that was not adopted. */
  arrivals(): AsyncDisposable & { path: string } {
    const path = join(this.#arriving, newId());
    mkdirSync(path, { mode: 0o700 });
    return {
      path,
      async [Symbol.asyncDispose]() {
        await rm(path, { recursive: true, force: true });
      },
    };
  }

  /**
   * Turns a file into a blob, or into the skeleton of one; its digest was checked, and a whole one was synced. Synchronous,
   * so that the owner's record can be written in the same step. The file keeps its old name too, because an image may have the
   * layer twice.
   */
  adopt(file: string, digest: string, form: 'whole' | 'skeleton'): void {
    const path = form === 'whole' ? this.path(digest) : this.skeletonPath(digest);
    try {
      linkSync(file, path);
      if (form === 'skeleton') this.#unsynced.add(path);
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error; // the same bytes
    }
  }

  /** Syncs the skeletons and the names of all blobs to the disk: to be called before an image gets its record. */
  async sync(): Promise<void> {
    const skeletons = [...this.#unsynced];
    await Promise.all(skeletons.map(syncFile));
    for (const path of skeletons) this.#unsynced.delete(path);
    await Promise.all([this.#whole, this.#skeletons].map(syncFile));
  }

  /** Removes a blob in both forms; a missing one is not an error. */
  remove(digest: string): void {
    for (const path of [this.path(digest), this.skeletonPath(digest)]) rmSync(path, { force: true });
  }

  /** Sets aside blobs without a record. */
  setAsideAllBut(owned: ReadonlySet<string>, setAside: SetAside): void {
    for (const folder of [this.#whole, this.#skeletons]) {
      for (const name of readdirSync(folder)) if (!owned.has(`sha256:${name}`)) setAside.take(join(folder, name));
    }
  }
}

/** A removed one needs no sync. */
async function syncFile(path: string): Promise<void> {
  try {
    await using file = await open(path, 'r');
    await file.sync();
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}

function nameOf(digest: string): string {
  if (!DIGEST.test(digest)) throw new EngineError('invalid', `invalid checksum digest format: ${digest}`);
  return digest.slice('sha256:'.length);
}
