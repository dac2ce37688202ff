import { readdirSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';

import { EngineError, hasCode } from '../lib/errors.ts';
import { readIdentity, readMarker, type Identity } from './identity.ts';

const DATABASE = 'gantry.db';
/** Where what belongs to records lies, and what lies there without one. */
const BELONGINGS = new Map([
  ['layers', /^(common|empty|\.trash|new-.*)$/],
  ['writable', /^\.trash$/],
  ['containers', /^$/],
  ['volumes', /^\.trash/],
  ['blobs/sha256', /^$/],
]);

/**
 * Refuses a database that cannot be the one that belongs to what lies in the data root: with a wrong one, containers,
 * layers and volumes would have no record, and look like rubbish.
 *
 * Returns when the backup was made that somebody has put in the place of the database.
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
  const backupAt = dropForeignLog(path, () => refuse(`${DATABASE} is no database`));
  if (backupAt === undefined && marker?.isOpen === true && sizeOf(`${path}-wal`) === 0) {
    refuse(`${DATABASE}-wal is missing, which has the latest records: the last daemon was killed`);
  }
  const { tables, identity } = look(path);
  if (tables.length > 0 && !tables.includes('schema_version')) refuse(`${DATABASE} is not Gantry's`);
  if (!inUse) return backupAt;
  if (tables.length === 0) refuse(`${DATABASE} is empty`);
  if (marker === undefined) return backupAt;
  if (identity?.id !== marker.id) refuse(`${DATABASE} belongs to another data root`);
  if (backupAt === undefined && (identity?.generation ?? 0) < marker.generation) {
    refuse(`${DATABASE} is older than the one that was in use here last`);
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

/** The log beside a backup that was put here is that of the database before: it would be mixed into it. */
function dropForeignLog(path: string, notADatabase: () => never): string | undefined {
  // The file by itself, whatever lies beside it.
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

/** What is in it, with its log; nothing is changed. */
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
