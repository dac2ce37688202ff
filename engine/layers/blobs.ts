import { linkSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { EngineError, hasCode } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import type { SetAside } from '../trees/set-aside.ts';

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * Layer archives as received, by their digest, so that a later save or push gives the same bytes.
 *
 * A blob appears whole (written beside, synced, renamed) and never changes.
 */
export class Blobs {
  readonly #directory: string;
  readonly #arriving: string;

  constructor(dataRoot: string) {
    this.#directory = join(dataRoot, 'blobs', 'sha256');
    this.#arriving = join(dataRoot, 'blobs', 'arriving');
    mkdirSync(this.#directory, { recursive: true, mode: 0o700 });
    // Uploads that were interrupted by the daemon's death cannot continue.
    rmSync(this.#arriving, { recursive: true, force: true });
    mkdirSync(this.#arriving, { mode: 0o700 });
  }

  path(digest: string): string {
    if (!DIGEST.test(digest)) throw new EngineError('invalid', `invalid checksum digest format: ${digest}`);
    return join(this.#directory, digest.slice('sha256:'.length));
  }

  has(digest: string): boolean {
    return statSync(this.path(digest), { throwIfNoEntry: false }) !== undefined;
  }

  sizeBytes(digest: string): number {
    return statSync(this.path(digest)).size;
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
   * Turns a file into a blob; it was synced, and its digest was checked while it was written. Synchronous, so that the
   * owner's record can be written in the same step. The file keeps its old name too, because an image may have the layer
   * twice.
   */
  adopt(file: string, digest: string): void {
    try {
      linkSync(file, this.path(digest));
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error; // the same bytes
    }
  }

  /** Syncs the blobs' names to the disk. */
  async sync(): Promise<void> {
    await using handle = await open(this.#directory, 'r');
    await handle.sync();
  }

  /** Removes a blob; a missing one is not an error. */
  remove(digest: string): void {
    rmSync(this.path(digest), { force: true });
  }

  /** Sets aside blobs without a record. */
  setAsideAllBut(owned: ReadonlySet<string>, setAside: SetAside): void {
    for (const name of readdirSync(this.#directory)) {
      if (!owned.has(`sha256:${name}`)) setAside.take(join(this.#directory, name));
    }
  }
}
