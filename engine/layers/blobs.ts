import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { EngineError } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import type { SetAside } from '../trees/set-aside.ts';

const DIGEST = /^sha256:[0-9a-f]{64}$/;

/**
 * Layer archives as they were received, by their digest: what is saved or pushed later is the same to the byte.
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
    // Whatever was on its way when the daemon died has lost its sender.
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

  /** A folder for files on their way in; it disappears with everything that was not adopted. */
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
   * Makes a file that was synced, and whose digest was checked while it was written, a blob. Synchronous, so that the
   * record of its owner can be written before anybody looks.
   */
  adopt(file: string, digest: string): void {
    renameSync(file, this.path(digest));
  }

  /** Brings the blobs' names onto the disk. */
  async sync(): Promise<void> {
    await using handle = await open(this.#directory, 'r');
    await handle.sync();
  }

  /** Removing a blob that is not there is fine. */
  remove(digest: string): void {
    rmSync(this.path(digest), { force: true });
  }

  /** Sets aside what no record names. */
  setAsideAllBut(owned: ReadonlySet<string>, setAside: SetAside): void {
    for (const name of readdirSync(this.#directory)) {
      if (!owned.has(`sha256:${name}`)) setAside.take(join(this.#directory, name));
    }
  }
}
