import { readdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';

import { EngineError, hasCode } from '../lib/errors.ts';
import { readIdentity, readMarker, type Identity } from './identity.ts';

const DATABASE = 'gantry.db';
/** The folders with files of records, and their entries that need no record. */
const BELONGINGS = new Map([
  ['layers', /^(common|empty|\.trash|new-.*)$/],
  ['writable', /^\.trash$/],
  ['containers', /^$/],
  ['volumes', /^\.trash/],
  ['blobs/sha256', /^$/],
  ['blobs/skeletons', /^$/],
]);

/**
 * Throws for a database that does not belong to the data root: with a wrong one, containers, layers and volumes would
 * have no record, and be taken for leftovers.
 *
 * Returns the time of the backup if the database is a restored backup.
 */
export function checkDatabase(dataRoot: string): string | undefined {
  const path = join(dataRoot, DATABASE);
  const refuse = (problem: string): never => refuseDatabase(dataRoot, problem);
  const inUse = hasBelongings(dataRoot);
  if (sizeOf(path) === 0) {
    if (inUse || sizeOf(`${path}-wal`) > 0) refuse(`${DATABASE} is missing or empty`);
    return undefined;
  }
  const marker = readMarker(dataRoot);
  const backupAt = dropForeignLog(path, () => refuse(`${DATABASE} is not a database`));
  if (backupAt === undefined && marker?.isOpen === true && sizeOf(`${path}-wal`) === 0) {
    refuse(`${DATABASE}-wal is missing; it has the latest records, because the last daemon was killed`);
  }
  const { tables, identity } = look(path);
  if (tables.length > 0 && !tables.includes('schema_version')) refuse(`${DATABASE} is not Gantry's`);
  if (!inUse) return backupAt;
  if (tables.length === 0) refuse(`${DATABASE} is empty`);
  if (marker === undefined) return backupAt;
  if (identity?.id !== marker.id) refuse(`${DATABASE} belongs to another data root`);
  if (backupAt === undefined && (identity?.generation ?? 0) < marker.generation) {
    refuse(`${DATABASE} is older than the database that was last in use here`);
  }
  return backupAt;
}

function refuseDatabase(dataRoot: string, problem: string): never {
  throw new EngineError(
    'conflict',
    `the data root ${dataRoot} holds images, containers or volumes, but ${problem}. Nothing was touched. ` +
      `Put the right ${DATABASE} with its -wal back, or a copy that "gantry backup" made; to begin anew, move ${dataRoot} away`,
  );
}

function hasBelongings(dataRoot: string): boolean {
  return [...BELONGINGS].some(([folder, other]) => {
    try {
      return readdirSync(join(dataRoot, folder)).some((name) => !other.test(name));
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return false;
      throw error;
    }
  });
}

/** The log beside a restored backup belongs to the former database, and must not be applied to it. */
function dropForeignLog(path: string, notADatabase: () => never): string | undefined {
  // Reads the file alone, without a log beside it.
  const url = pathToFileURL(path);
  url.searchParams.set('immutable', '1');
  const sql = new DatabaseSync(url, { readOnly: true });
  try {
    const backupAt = readIdentity(sql)?.backupAt;
    if (backupAt === undefined) return undefined;
    for (const log of [`${path}-wal`, `${path}-shm`]) if (sizeOf(log) > 0) renameSync(log, `${log}.before-restore`);
    return backupAt;
  } catch (error) {
    if (error instanceof Error && 'errcode' in error) return notADatabase();
    throw error;
  } finally {
    sql.close();
  }
}

/** Reads it with its log, without changing anything. */
function look(path: string): { tables: string[]; identity: Identity | undefined } {
  const sql = new DatabaseSync(path, { readOnly: true });
  try {
    const rows = sql.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").all();
    return { tables: rows.map(({ name }) => String(name)), identity: readIdentity(sql) };
  } finally {
    sql.close();
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
