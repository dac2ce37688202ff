import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { EngineError } from '../lib/errors.ts';

/** Held while a daemon uses one of its roots. The kernel releases it, also when the daemon is killed. */
export class FolderLock implements Disposable {
  readonly #held: DatabaseSync;

  /** Throws when another daemon holds it; `what` is the user's word for the folder. */
  constructor(folder: string, what: string) {
    this.#held = new DatabaseSync(join(folder, 'lock'));
    try {
      this.#held.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    } catch (error) {
      throw new EngineError('conflict', `another daemon uses the ${what} ${folder}`, { cause: error });
    }
  }

  [Symbol.dispose](): void {
    this.#held.close();
  }
}
