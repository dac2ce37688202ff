import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Held while a daemon uses a data root. The kernel releases it, also when the daemon is killed. */
export class DataRootLock implements Disposable {
  readonly #held: DatabaseSync;

  /** Throws when another daemon holds it. */
  constructor(dataRoot: string) {
    this.#held = new DatabaseSync(join(dataRoot, 'lock'));
    try {
      this.#held.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
    } catch (error) {
      throw new Error(`another daemon uses the data root ${dataRoot}`, { cause: error });
    }
  }

  [Symbol.dispose](): void {
    this.#held.close();
  }
}
