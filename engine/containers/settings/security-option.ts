import { EngineError } from '../../lib/errors.ts';
import type { HostConfig } from './host-config/host-config-schema.ts';

/** The settings of all entries of `SecurityOpt`; '' is the usual profile. */
export type SecurityOptions = Readonly<{
  noNewPrivileges: boolean;
  apparmor: string;
  /** `unconfined`, or a profile as JSON. */
  seccomp: string;
  /** Whether /sys/fs/cgroup is writable without privileges. */
  writableCgroups: boolean;
  /** For SELinux: stored and shown, but not used. */
  labels: readonly string[];
}>;

/** Switches: a name alone, or with a boolean. */
const FLAGS: ReadonlyMap<string, 'noNewPrivileges' | 'writableCgroups'> = new Map([
  ['no-new-privileges', 'noNewPrivileges'],
  ['writable-cgroups', 'writableCgroups'],
]);
/** Go's spellings. */
const TRUE = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const FALSE = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);

/**
 * The last of several entries of one name counts, as in dockerd; `:` is an old form of `=`. Throws `invalid` for a
 * malformed entry.
 */
export function securityOptions({ SecurityOpt }: Pick<HostConfig, 'SecurityOpt'>): SecurityOptions {
  const found = { noNewPrivileges: false, apparmor: '', seccomp: '', writableCgroups: false, labels: [] as string[] };
  for (const option of SecurityOpt ?? []) {
    const flag = FLAGS.get(option);
    if (flag !== undefined) found[flag] = true;
    else if (option === 'disable') found.labels.push(option);
    else applyOption(option, found);
  }
  return found;
}

function applyOption(option: string, found: { -readonly [Key in keyof SecurityOptions]: SecurityOptions[Key] }): void {
  const separator = option.includes('=') ? '=' : ':';
  const at = option.indexOf(separator);
  if (at === -1) throw new EngineError('invalid', `invalid --security-opt 1: ${JSON.stringify(option)}`);
  const value = option.slice(at + 1);
  const flag = FLAGS.get(option.slice(0, at));
  if (flag !== undefined && (TRUE.has(value) || FALSE.has(value))) {
    found[flag] = TRUE.has(value);
    return;
  }
  switch (option.slice(0, at)) {
    case 'label':
      found.labels = [...found.labels, value];
      return;
    case 'apparmor':
    case 'seccomp':
      found[option.slice(0, at) as 'apparmor' | 'seccomp'] = value;
      return;
  }
  throw new EngineError('invalid', `invalid --security-opt 2: ${JSON.stringify(option)}`);
}
