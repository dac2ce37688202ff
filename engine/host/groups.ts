import { readFileSync } from 'node:fs';

import { EngineError } from '../lib/errors.ts';

/** The id of a group by its name in /etc/group, or of the number that it already is. Throws `invalid`. */
export function groupId(group: string): number {
  if (/^\d+$/.test(group)) return Number(group);
  const line = readFileSync('/etc/group', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith(`${group}:`));
  if (line === undefined) throw new EngineError('invalid', `group ${group} does not exist`);
  return Number(line.split(':')[2]);
}
