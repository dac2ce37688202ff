import { EngineError } from '../lib/errors.ts';
import { readRootFile } from './root-files.ts';

export type ContainerUser = Readonly<{ uid: number; gid: number; additionalGids: readonly number[]; home: string }>;

/** As a client or an image writes it; `groupAdd` are names or numbers of further groups. */
type WrittenUser = Readonly<{ user: string; groupAdd: readonly string[] }>;

/** The kernel takes 2^32-1 for "do not change", which leaves a process root. */
const MAX_ID = 2 ** 31 - 1;

type Entry = Readonly<{ name: string; uid: string; gid: string; home: string }>;
type Group = Readonly<{ name: string; gid: string; members: readonly string[] }>;

/** Refuses numbers that no user or group can have; names are looked up when a process starts. Throws `invalid`. */
export function checkUser({ user, groupAdd }: WrittenUser): void {
  for (const part of [...user.split(':', 2), ...groupAdd]) if (isNumber(part)) idOf(part);
}

/**
 * The ids behind `user`, `user:group`, `uid` or `uid:gid`, and the groups in `groupAdd`, by the files of /etc below
 * `root`. Numbers are not looked up. Throws `invalid` for an unknown name.
 */
export async function resolveUser(
  { user, groupAdd }: WrittenUser,
  root: string,
  { needsHome = true } = {},
): Promise<ContainerUser> {
  const [written = '', groupPart = ''] = user.split(':', 2);
  const userPart = written === '' ? '0' : written;
  const readsUsers = needsHome || groupPart === '' || !isNumber(userPart);
  const readsGroups = groupPart === '' || ![groupPart, ...groupAdd].every(isNumber);
  const [users, groups] = await Promise.all([readsUsers ? readUsers(root) : [], readsGroups ? readGroups(root) : []]);
  const entry = users.find(({ name, uid }) => name === userPart || isSame(uid, userPart));
  if (entry === undefined && !isNumber(userPart)) {
    throw new EngineError('invalid', `unable to find user ${userPart}: no matching entries in passwd file`);
  }
  const uid = idOf(entry?.uid ?? userPart);
  const gid = groupPart === '' ? idOf(entry?.gid ?? '0') : groupId(groups, groupPart);
  const memberships = groupPart !== '' || entry === undefined ? [] : groups.filter(isMember(entry.name));
  const further = [...memberships.map((group) => idOf(group.gid)), ...groupAdd.map((name) => groupId(groups, name))];
  // A process that gives up a supplementary group must not bypass what is denied to that group (CVE-2022-36109).
  return { uid, gid, additionalGids: [...new Set([gid, ...further])], home: homeOf(users, uid) };
}

/** As in the runtimes: the first entry with this number counts, whatever its name. */
function homeOf(users: readonly Entry[], uid: number): string {
  return users.find((one) => isSame(one.uid, String(uid)))?.home || '/';
}

function isMember(name: string): (group: Group) => boolean {
  return ({ members }) => members.includes(name);
}

function groupId(groups: readonly Group[], written: string): number {
  const entry = groups.find(({ name, gid }) => name === written || isSame(gid, written));
  if (entry === undefined && !isNumber(written)) {
    throw new EngineError('invalid', `unable to find group ${written}: no matching entries in group file`);
  }
  return idOf(entry?.gid ?? written);
}

function isNumber(text: string): boolean {
  return /^\d+$/.test(text);
}

function isSame(one: string, other: string): boolean {
  return isNumber(one) && isNumber(other) && Number(one) === Number(other);
}

function idOf(text: string): number {
  if (isNumber(text) && Number(text) <= MAX_ID) return Number(text);
  throw new EngineError('invalid', `uids and gids must be in range 0-${MAX_ID}`);
}

async function readUsers(root: string): Promise<Entry[]> {
  const lines = linesOf(await readRootFile(root, '/etc/passwd'));
  return lines
    .map(([name = '', , uid = '', gid = '', , home = '']) => ({ name, uid, gid, home }))
    .filter(({ uid, gid }) => isNumber(uid) && isNumber(gid));
}

async function readGroups(root: string): Promise<Group[]> {
  const lines = linesOf(await readRootFile(root, '/etc/group'));
  return lines
    .map(([name = '', , gid = '', members = '']) => ({ name, gid, members: members.split(',') }))
    .filter(({ gid }) => isNumber(gid));
}

function linesOf(text: string): string[][] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(':'));
}
