import { EngineError } from '../../lib/errors.ts';
import type { HostConfig } from './host-config/host-config-schema.ts';

/** The settings of all entries of `SecurityOpt`; '' is the usual profile. */
export type SecurityOptions = Readonly<{
  noNewPrivileges: boolean;
  apparmor: string;
  /** `unconfined`, or a profile as JSON. */
  seccomp: string;
  /** For SELinux: stored and shown, but not used. */
  labels: readonly string[];
}>;

/** Go's spellings. */
const TRUE = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const FALSE = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);

/**
 * The last of several entries of one name counts, as in dockerd; `:` is an old form of `=`. Throws `invalid` for a
 * malformed entry.
 */
export function securityOptions({ SecurityOpt }: Pick<HostConfig, 'SecurityOpt'>): SecurityOptions {
  const found = { noNewPrivileges: false, apparmor: '', seccomp: '', labels: [] as string[] };
  for (const option of SecurityOpt ?? []) {
    if (option === 'no-new-privileges') found.noNewPrivileges = true;
    else if (option === 'disable') found.labels.push(option);
    else read(option, found);
  }
  return found;
}

function read(option: string, found: { -readonly [Key in keyof SecurityOptions]: SecurityOptions[Key] }): void {
  const separator = option.includes('=') ? '=' : ':';
  const at = option.indexOf(separator);
  if (at === -1) throw new EngineError('invalid', `invalid --security-opt 1: ${JSON.stringify(option)}`);
  const value = option.slice(at + 1);
  switch (option.slice(0, at)) {
    case 'label':
      found.labels = [...found.labels, value];
      return;
    case 'apparmor':
    case 'seccomp':
      found[option.slice(0, at) as 'apparmor' | 'seccomp'] = value;
      return;
    case 'no-new-privileges':
      if (TRUE.has(value) || FALSE.has(value)) {
        found.noNewPrivileges = TRUE.has(value);
        return;
      }
  }
  throw new EngineError('invalid', `invalid --security-opt 2: ${JSON.stringify(option)}`);
}
