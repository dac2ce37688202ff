import { EngineError } from '../../lib/errors.ts';

/** Options that exclude each other: the last one of a row counts. */
const SWITCHES: readonly (readonly string[])[] = [
  ['ro', 'rw'],
  ['suid', 'nosuid'],
  ['dev', 'nodev'],
  ['exec', 'noexec'],
  ['sync', 'async'],
  ['mand', 'nomand'],
  ['atime', 'noatime'],
  ['diratime', 'nodiratime'],
  ['relatime', 'norelatime'],
  ['strictatime', 'nostrictatime'],
  ['private', 'rprivate', 'shared', 'rshared', 'slave', 'rslave', 'unbindable', 'runbindable'],
];
const SINGLE = ['defaults', 'dirsync', 'remount', 'bind', 'rbind'];
const VALUES = new Set(['size', 'mode', 'uid', 'gid', 'nr_inodes', 'nr_blocks', 'mpol']);

/** The options of a tmpfs: the client's over dockerd's. Throws `invalid` for an unknown one. */
export function tmpfsOptions(text: string): string[] {
  const chosen = new Map([
    ['exec', 'noexec'],
    ['suid', 'nosuid'],
    ['dev', 'nodev'],
  ]);
  for (const option of text.split(',').filter((word) => word !== '')) chosen.set(keyOf(option), option);
  return [...chosen.values()].filter((option) => option !== 'defaults');
}

function keyOf(option: string): string {
  const row = SWITCHES.find((words) => words.includes(option));
  if (row !== undefined) return row[0]!;
  const [name = '', value] = option.split(/=(.*)/s);
  if (value === undefined ? SINGLE.includes(name) : VALUES.has(name)) return name;
  const words = value === undefined ? [name] : [name, value];
  throw new EngineError('invalid', `invalid tmpfs option [${words.map((word) => JSON.stringify(word)).join(' ')}]`);
}
