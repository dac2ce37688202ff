import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { EngineError } from '../lib/errors.ts';

const SQLITE_BUSY = 5;

/** Held while a daemon uses one of its roots. The kernel releases it, also when the daemon is killed. */
export class FolderLock implements Disposable {
  readonly #held: DatabaseSync;

  /**
   * Throws if the lock is not available, naming another daemon that holds it; `what` describes the folder to the user.
   */
  constructor(folder: string, what: string) {
    try {
      this.#held = lock(join(folder, 'lock'));
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      if (isBusy(error))
        throw new EngineError('conflict', `another daemon uses the ${what} ${folder}`, { cause: error });
      throw new EngineError('failed', `the ${what} ${folder} cannot be locked: ${error.message}`, { cause: error });
    }
  }

  [Symbol.dispose](): void {
    this.#held.close();
  }
}

function lock(path: string): DatabaseSync {
  const database = new DatabaseSync(path);
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE');
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

function isBusy(error: Error): boolean {
  return 'errcode' in error && (Number(error.errcode) & 0xff) === SQLITE_BUSY;
}
