import { arch, constants, release } from 'node:os';

import {
  compileSeccomp,
  type SeccompArgument,
  type SeccompFilter,
  type SeccompRule,
} from '../../host/confinement/seccomp.ts';
import { FS_IOC_FSSETXATTR } from '../../host/files/project-quota.ts';
import { parseBoundedJson } from '../../lib/bounded-json.ts';
import { EngineError } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { ALWAYS, NAMESPACE_FLAGS, PERSONALITIES, WITH_CAPABILITY } from './seccomp-profile.ts';

type Rule = {
  names?: string[];
  name?: string;
  action: string;
  args?: SeccompArgument[] | null;
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
  syscalls?: Rule[] | null;
};

const ARCHITECTURE: ReadonlyMap<string, { name: string; scmp: string }> = new Map(
  Object.entries({
    x64: { name: 'amd64', scmp: 'SCMP_ARCH_X86_64' },
    arm64: { name: 'arm64', scmp: 'SCMP_ARCH_AARCH64' },
  }),
);

const ARCHITECTURES = [
  { architecture: 'SCMP_ARCH_X86_64', subArchitectures: ['SCMP_ARCH_X86'] },
  { architecture: 'SCMP_ARCH_AARCH64', subArchitectures: ['SCMP_ARCH_ARM'] },
];

const made = new Map<string, SeccompFilter>();
const compiled = new WeakMap<SeccompFilter, Buffer | undefined>();

/**
 * The default filter for a container with these capabilities, in the form of the OCI runtime specification; `keepsProject`
 * refuses to take files out of the project whose quota limits them.
 */
export function defaultSeccomp(capabilities: readonly string[], keepsProject = false): SeccompFilter {
  const key = [...capabilities.toSorted(), ...(keepsProject ? ['keepsProject'] : [])].join();
  const known = made.get(key);
  if (known !== undefined) return known;
  const filter = toOci(dockerdsProfile(capabilities, keepsProject), capabilities);
  made.set(key, filter);
  return filter;
}

/** A filter that a client sends with `SecurityOpt: ["seccomp=<JSON>"]`. */
export function customSeccomp(json: string, capabilities: readonly string[]): SeccompFilter {
  try {
    return toOci(parseBoundedJson(json) as Profile, capabilities);
  } catch (error) {
    throw new EngineError('invalid', `Decoding seccomp profile failed: ${mistakeIn(error)}`, { cause: error });
  }
}

function mistakeIn(error: unknown): string {
  if (error instanceof SyntaxError) return 'it is not JSON';
  return error instanceof TypeError ? 'it does not have the form of a profile' : messageOf(error);
}

/**
 * Annotations that hand the compiled filter to crun, which then takes it as it is: it would need 8 ms for each start
 * and each exec to compile it again. Other runtimes ignore them.
 */
export function compiledSeccomp(filter: SeccompFilter): Record<string, string> {
  if (!compiled.has(filter)) compiled.set(filter, compileSeccomp(filter));
  const program = compiled.get(filter);
  return program === undefined ? {} : { 'run.oci.seccomp_bpf_data': program.toString('base64') };
}

const allow = (names: readonly string[], args?: SeccompArgument[]): Rule => ({
  names: [...names],
  action: 'SCMP_ACT_ALLOW',
  ...(args !== undefined && { args }),
});
/** Calls that are not listed are refused with EPERM; calls newer than all listed ones with ENOSYS. */
function dockerdsProfile(capabilities: readonly string[], keepsProject: boolean): Profile {
  const granted = Object.entries(WITH_CAPABILITY).filter(([capability]) => capabilities.includes(capability));
  const allowed = new Set([...ALWAYS, ...granted.flatMap(([, names]) => names)]);
  if (keepsProject) allowed.delete('ioctl');
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    archMap: ARCHITECTURES,
    syscalls: [
      allow([...allowed]),
      ...PERSONALITIES.map((value) => allow(['personality'], [{ index: 0, value, op: 'SCMP_CMP_EQ' }])),
      ...(allowed.has('clone') ? [] : cloneWithoutNamespaces()),
      ...(keepsProject ? ioctlBut(FS_IOC_FSSETXATTR) : []),
    ],
  };
}

/** A request is the low 32 bits of a 64-bit argument: it differs if any of these bits does. */
function ioctlBut(request: number): Rule[] {
  return Array.from({ length: 32 }, (_, bit) => {
    const mask = 2 ** bit;
    const isSet = Math.floor(request / mask) % 2 === 1;
    return allow(['ioctl'], [{ index: 1, value: mask, valueTwo: isSet ? 0 : mask, op: 'SCMP_CMP_MASKED_EQ' }]);
  });
}

/** clone3 has its flags in memory, where no filter can read them: the C library falls back to clone. */
function cloneWithoutNamespaces(): Rule[] {
  return [
    allow(['clone'], [{ index: 0, value: NAMESPACE_FLAGS, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }]),
    { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: constants.errno.ENOSYS },
  ];
}

function toOci(profile: Profile, capabilities: readonly string[]): SeccompFilter {
  const own = ARCHITECTURE.get(arch());
  const mapped = profile.archMap?.find(({ architecture }) => architecture === own?.scmp);
  const architectures =
    mapped === undefined
      ? profile.architectures
      : [mapped.architecture, ...(mapped.subArchitectures ?? []).filter(isUsed)];
  return {
    defaultAction: profile.defaultAction,
    ...(profile.defaultErrnoRet !== undefined && { defaultErrnoRet: profile.defaultErrnoRet }),
    ...(architectures !== undefined && { architectures }),
    syscalls: (profile.syscalls ?? []).filter((rule) => applies(rule, capabilities, own?.name ?? '')).map(toOciRule),
  };
}

/** x32 is off in the kernels of the distributions, and costs every start 7 ms of filter compilation. */
function isUsed(architecture: string): boolean {
  return architecture !== 'SCMP_ARCH_X32';
}

function toOciRule({ names, name, action, args, errnoRet }: Rule): SeccompRule {
  return {
    names: names ?? [name ?? ''],
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
