import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { backup, DatabaseSync } from 'node:sqlite';

import { EngineError } from '../lib/errors.ts';
import { readIdentity } from './identity.ts';

/** Copied in one step, because a write of the daemon between two steps would restart the copy. */
const ALL_PAGES = 0x7fff_ffff;

/**
 * Copies the database of a data root into one file, also while a daemon uses it. The copy is marked as one, so that a
 * daemon accepts it in place of the database.
 */
export async function backupDatabase(dataRoot: string, file: string, now: Temporal.Instant): Promise<void> {
  const path = join(dataRoot, 'gantry.db');
  if (!existsSync(path)) throw new EngineError('notFound', `there is no database ${path}`);
  const arriving = `${file}.new`;
  rmSync(arriving, { force: true });
  closeSync(openSync(arriving, 'wx', 0o600)); // it contains secrets
  try {
    const source = new DatabaseSync(path, { readOnly: true });
    try {
      if (readIdentity(source) === undefined) {
        throw new EngineError('conflict', `${path} was not used by this version of the daemon yet: start it once`);
      }
      await backup(source, arriving, { rate: ALL_PAGES });
    } finally {
      source.close();
    }
    mark(arriving, now);
    renameSync(arriving, file);
  } finally {
    rmSync(arriving, { force: true });
  }
}

/** One file, without a log beside it, and on the disk. */
function mark(file: string, now: Temporal.Instant): void {
  const copy = new DatabaseSync(file);
  try {
    copy.exec('PRAGMA journal_mode = DELETE');
    copy.prepare('UPDATE identity SET backup_at = ?').run(now.toString());
    const { integrity_check: answer } = copy.prepare('PRAGMA integrity_check(1)').get() ?? {};
    if (answer !== 'ok')
      throw new EngineError('failed', `the copy is damaged, and so is its source: ${String(answer)}`);
  } finally {
    copy.close();
  }
  const written = openSync(file, 'r');
  fsyncSync(written);
  closeSync(written);
}
