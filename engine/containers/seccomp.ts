import { readFileSync } from 'node:fs';
import { arch, release } from 'node:os';

import { EngineError, hasCode } from '../lib/errors.ts';

const FIELD_PROFILE = '/usr/share/containers/seccomp.json';

type Rule = {
  names?: string[];
  name?: string;
  action: string;
  args?: object[] | null;
  errnoRet?: number;
  includes?: Condition;
  excludes?: Condition;
};
type Condition = { caps?: string[]; arches?: string[]; minKernel?: string };
type Profile = {
  defaultAction: string;
  defaultErrnoRet?: number;
  architectures?: string[];
  archMap?: { architecture: string; subArchitectures?: string[] | null }[];
  syscalls: Rule[];
};

/** In force where the field's own profile is not installed: everything but what reaches the kernel behind all namespaces. */
const FALLBACK: Profile = {
  defaultAction: 'SCMP_ACT_ALLOW',
  syscalls: [
    {
      names: [
        ...['acct', 'add_key', 'bpf', 'clock_adjtime', 'clock_settime', 'create_module', 'delete_module'],
        ...[
          'finit_module',
          'get_kernel_syms',
          'init_module',
          'ioperm',
          'iopl',
          'kcmp',
          'kexec_file_load',
          'kexec_load',
        ],
        ...['keyctl', 'lookup_dcookie', 'nfsservctl', 'open_by_handle_at', 'perf_event_open', 'personality'],
        ...['query_module', 'quotactl', 'reboot', 'request_key', 'settimeofday', 'stime', 'swapoff', 'swapon', 'sysfs'],
        ...['_sysctl', 'userfaultfd', 'uselib', 'ustat', 'vm86', 'vm86old'],
      ],
      action: 'SCMP_ACT_ERRNO',
    },
    {
      names: [
        'fsconfig',
        'fsmount',
        'fsopen',
        'fspick',
        'mount',
        'mount_setattr',
        'move_mount',
        'open_tree',
        'pivot_root',
        'setns',
        'umount',
        'umount2',
        'unshare',
      ],
      action: 'SCMP_ACT_ERRNO',
      excludes: { caps: ['CAP_SYS_ADMIN'] },
    },
  ],
};

const ARCHITECTURE: Readonly<Record<string, { name: string; scmp: string }>> = {
  x64: { name: 'amd64', scmp: 'SCMP_ARCH_X86_64' },
  arm64: { name: 'arm64', scmp: 'SCMP_ARCH_AARCH64' },
};

let fieldProfile: Profile | undefined;
const made = new Map<string, object>();

/** The default filter for a container with these capabilities, in the form of the OCI runtime specification. */
export function defaultSeccomp(capabilities: readonly string[]): object {
  const key = capabilities.toSorted().join();
  const known = made.get(key);
  if (known !== undefined) return known;
  fieldProfile ??= readFieldProfile();
  const filter = toOci(fieldProfile, capabilities);
  made.set(key, filter);
  return filter;
}

/** A filter that a client sends with `SecurityOpt: ["seccomp=<JSON>"]`. */
export function customSeccomp(json: string, capabilities: readonly string[]): object {
  try {
    return toOci(JSON.parse(json) as Profile, capabilities);
  } catch (error) {
    throw new EngineError('invalid', `Decoding seccomp profile failed: ${String(error)}`, { cause: error });
  }
}

function readFieldProfile(): Profile {
  try {
    return JSON.parse(readFileSync(FIELD_PROFILE, 'utf8')) as Profile;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return FALLBACK;
    throw error;
  }
}

function toOci(profile: Profile, capabilities: readonly string[]): object {
  const own = ARCHITECTURE[arch()];
  const mapped = profile.archMap?.find(({ architecture }) => architecture === own?.scmp);
  const architectures =
    mapped === undefined
      ? profile.architectures
      : [mapped.architecture, ...(mapped.subArchitectures ?? []).filter(isUsed)];
  return {
    defaultAction: profile.defaultAction,
    ...(profile.defaultErrnoRet !== undefined && { defaultErrnoRet: profile.defaultErrnoRet }),
    ...(architectures !== undefined && { architectures }),
    syscalls: profile.syscalls.filter((rule) => applies(rule, capabilities, own?.name ?? '')).map(toOciRule),
  };
}

/** x32 is off in the kernels of the distributions, and costs every start 7 ms of filter compilation. */
function isUsed(architecture: string): boolean {
  return architecture !== 'SCMP_ARCH_X32';
}

function toOciRule({ names, name, action, args, errnoRet }: Rule): object {
  return {
    names: names ?? [name],
    action,
    ...(args && args.length > 0 && { args }),
    ...(errnoRet !== undefined && { errnoRet }),
  };
}

function applies(
  { includes = {}, excludes = {} }: Rule,
  capabilities: readonly string[],
  architecture: string,
): boolean {
  const has = (name: string): boolean => capabilities.includes(name);
  if (excludes.arches?.includes(architecture) === true || excludes.caps?.some(has) === true) return false;
  if (includes.arches?.length && !includes.arches.includes(architecture)) return false;
  if (includes.caps?.length && !includes.caps.every(has)) return false;
  return includes.minKernel === undefined || kernelIsAtLeast(includes.minKernel);
}

function kernelIsAtLeast(wanted: string): boolean {
  const [major = 0, minor = 0] = release().split('.').map(Number.parseFloat);
  const [wantedMajor = 0, wantedMinor = 0] = wanted.split('.').map(Number.parseFloat);
  return major > wantedMajor || (major === wantedMajor && minor >= wantedMinor);
}
