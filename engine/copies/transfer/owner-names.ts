import { readFileSync } from 'node:fs';

import { hasCode } from '../../lib/errors.ts';

let users: ReadonlyMap<number, string> | undefined;
let groups: ReadonlyMap<number, string> | undefined;

/** The name of a user on this machine, as in docker's checksums of files of images; empty for an unknown user. */
export function userName(uid: number): string {
  users ??= namesIn('/etc/passwd');
  return users.get(uid) ?? '';
}

export function groupName(gid: number): string {
  groups ??= namesIn('/etc/group');
  return groups.get(gid) ?? '';
}

function namesIn(file: string): Map<number, string> {
  const names = new Map<number, string>();
  for (const line of linesOf(file)) {
    const [name = '', , id = ''] = line.split(':');
    if (/^\d+$/.test(id) && !names.has(Number(id))) names.set(Number(id), name);
  }
  return names;
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\n');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}
