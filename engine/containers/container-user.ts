import { lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { getXattr } from '../host/xattr.ts';
import type { Overlay } from '../layers/layers.ts';
import { EngineError, hasCode } from '../lib/errors.ts';

export type ContainerUser = Readonly<{ uid: number; gid: number; additionalGids: readonly number[] }>;

/**
 * The ids behind `user`, `user:group`, `uid` or `uid:gid`, and the groups in `groupAdd`, by the container's own
 * /etc/passwd and /etc/group. Nothing is mounted for it. Throws `invalid` for a name that is not there.
 */
export function resolveUser(written: string, groupAdd: readonly string[], overlay: Overlay): ContainerUser {
  const [userPart = '', groupPart = ''] = written.split(':', 2);
  const passwd = lines(readFromLayers(overlay, 'passwd'));
  const groups = lines(readFromLayers(overlay, 'group'));
  const wanted = userPart === '' ? '0' : userPart;
  const entry = passwd.find(([name, , uid]) => name === wanted || uid === wanted);
  const uid =
    entry === undefined
      ? numeric(wanted, `unable to find user ${wanted}: no matching entries in passwd file`)
      : Number(entry[2]);
  const gid = groupPart === '' ? Number(entry?.[3] ?? 0) : groupId(groups, groupPart);
  const own =
    groupPart !== '' || entry === undefined
      ? []
      : groups.filter(([, , , members]) => members?.split(',').includes(entry[0]!)).map(([, , id]) => Number(id));
  const added = groupAdd.map((name) => groupId(groups, name));
  return { uid, gid, additionalGids: [...new Set([...own, ...added])] };
}

function groupId(groups: readonly string[][], written: string): number {
  const entry = groups.find(([name, , id]) => name === written || id === written);
  if (entry !== undefined) return Number(entry[2]);
  return numeric(written, `unable to find group ${written}: no matching entries in group file`);
}

function numeric(text: string, complaint: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new EngineError('invalid', complaint);
  return Number(text);
}

function lines(text: string): string[][] {
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(':'));
}

/**
 * A file of /etc as the merged layers show it. A symbolic link is not followed: it could lead out of the layer, and
 * an image that links these files is treated as one without them.
 */
function readFromLayers({ base, lower, upper }: Overlay, name: string): string {
  for (const layer of [upper, ...lower.map((folder) => join(base, folder))]) {
    const etc = kindOf(join(layer, 'etc'));
    if (etc === 'other') return '';
    if (etc === 'none') continue;
    const file = kindOf(join(layer, 'etc', name));
    if (file === 'file') return readFileSync(join(layer, 'etc', name), 'utf8');
    if (file !== 'none' || isOpaque(join(layer, 'etc'))) return '';
  }
  return '';
}

function kindOf(path: string): 'file' | 'directory' | 'other' | 'none' {
  try {
    const found = lstatSync(path);
    return found.isFile() ? 'file' : found.isDirectory() ? 'directory' : 'other';
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return 'none';
    throw error;
  }
}

function isOpaque(path: string): boolean {
  return getXattr(path, 'trusted.overlay.opaque')?.toString() === 'y';
}
