import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

import { EngineError, refuseIf } from '../../lib/errors.ts';
import type { IdMap, IdRange } from './id-map.ts';

/** The user and group that `default` stands for; dockerd's. */
const DEFAULT_USER = 'dockremap';
const FIRST_SUBORDINATE = 100_000;
const SUBORDINATES = 65_536;

type Entry = Readonly<{ name: string; id: number }>;
type Subordinates = Readonly<{ owner: string; first: number; size: number }>;

/** Refuses what is no `user[:group]`. Throws `invalid`, also for users and groups that do not exist. */
export function checkRemap(setting: string): void {
  if (setting === '' || setting === 'default') return;
  namesOf(setting);
}

/**
 * The map of a setting of `--userns-remap`: the subordinate ids of its user and group. `default` makes both, as dockerd
 * does. Undefined without a map. Throws `invalid`.
 */
export function mapOfRemap(setting: string): IdMap | undefined {
  if (setting === '') return undefined;
  if (setting === 'default') makeDefaultUser();
  const { user, group } = namesOf(setting === 'default' ? DEFAULT_USER : setting);
  if (user.name === 'root') return undefined; // as dockerd: a map of root to itself is none
  return { uids: rangesOf('/etc/subuid', 'user', user), gids: rangesOf('/etc/subgid', 'group', group) };
}

/** Without a group it is that of the user's name. */
function namesOf(setting: string): { user: Entry; group: Entry } {
  const parts = setting.split(':');
  refuseIf(parts.length > 2 || parts.includes(''), `invalid user/group specification: ${JSON.stringify(setting)}`);
  const user = find('/etc/passwd', 'user', parts[0]!);
  return { user, group: find('/etc/group', 'group', parts[1] ?? user.name) };
}

function find(file: string, kind: string, wanted: string): Entry {
  const found = entriesOf(file).find(({ name, id }) => name === wanted || String(id) === wanted);
  if (found === undefined) throw new EngineError('invalid', `the ${kind} ${JSON.stringify(wanted)} is not in ${file}`);
  return found;
}

function entriesOf(file: string): Entry[] {
  return linesOf(file).map(([name = '', , id = '']) => ({ name, id: Number(id) }));
}

function subordinatesOf(file: string): Subordinates[] {
  return linesOf(file)
    .map(([owner = '', first = '', size = '']) => ({ owner, first: Number(first), size: Number(size) }))
    .filter(({ first, size }) => first > 0 && size > 0)
    .toSorted((one, other) => one.first - other.first);
}

/** One after the other, from 0 in the container. */
function rangesOf(file: string, kind: string, { name, id }: Entry): IdRange[] {
  let inside = 0;
  const ranges = subordinatesOf(file)
    .filter(({ owner }) => owner === name || owner === String(id))
    .map(({ first, size }) => {
      const range = { inside, outside: first, size };
      inside += size;
      return range;
    });
  refuseIf(ranges.length === 0, `the ${kind} ${JSON.stringify(name)} has no subordinate ids in ${file}`);
  return ranges;
}

/** Another daemon may do the same at this moment: what counts is that they are there. */
function makeDefaultUser(): void {
  const exists = (): boolean => entriesOf('/etc/passwd').some(({ name }) => name === DEFAULT_USER);
  const create = ['--system', '--user-group', '--no-create-home', '--shell', '/usr/sbin/nologin', DEFAULT_USER];
  if (!exists()) change('useradd', create, exists);
  for (const [file, flag] of [
    ['/etc/subuid', '--add-subuids'],
    ['/etc/subgid', '--add-subgids'],
  ] as const) {
    const isThere = (): boolean => subordinatesOf(file).some(({ owner }) => owner === DEFAULT_USER);
    if (isThere()) continue;
    const first = nextFree(subordinatesOf(file));
    change('usermod', [flag, `${first}-${first + SUBORDINATES - 1}`, DEFAULT_USER], isThere);
  }
}

function nextFree(taken: readonly Subordinates[]): number {
  let first = FIRST_SUBORDINATE;
  for (const range of taken) {
    if (range.first < first + SUBORDINATES && range.first + range.size > first) first = range.first + range.size;
  }
  return first;
}

/** The programs of the package passwd lock the files, and refuse when another one holds the lock. */
function change(program: string, words: readonly string[], isDone: () => boolean): void {
  try {
    execFileSync(program, words, { stdio: 'pipe', timeout: 30_000 });
  } catch (error) {
    if (isDone()) return;
    throw new EngineError('invalid', `cannot make the user ${DEFAULT_USER}: ${String(error)}`, { cause: error });
  }
}

function linesOf(file: string): string[][] {
  if (!existsSync(file)) return [];
  return readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(':'));
}
