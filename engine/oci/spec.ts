import { readFileSync } from 'node:fs';

import { detectCgroups } from '../host/cgroups/cgroups.ts';
import { effectiveCapabilities, hardLimits } from '../host/confinement/privileges.ts';
import type { SeccompFilter } from '../host/confinement/seccomp.ts';
import { isRootless } from '../host/rootless.ts';
import { ociMappings } from '../host/users/id-map.ts';
import { tooLong } from '../runtime/start-failure.ts';
import { isTooLong } from './argument-space.ts';
import type { ProcessDescription, SpecDescription, Ulimits, WantedCapabilities } from './description.ts';
import { INIT_PATH, INIT_PROGRAM } from './init-program.ts';
import { ociMounts, readOnlyCgroups } from './mounts/mounts.ts';
import { placeMounts } from './mounts/place-mounts.ts';
import { ociDevices, ociResources } from './resources.ts';
import { wantedCapabilities } from './security/capabilities.ts';
import { hiddenPaths } from './security/hidden-paths.ts';
import { compiledSeccomp, customSeccomp, defaultSeccomp } from './security/seccomp.ts';
import { systemdAnnotations } from './systemd-properties.ts';
import type { ContainerUser } from './user.ts';

declare global {
  interface JSON {
    /** A piece of JSON as it is; the compiler's library does not know it yet. */
    rawJSON(text: string): object;
  }
}

let held: ReadonlySet<string> | undefined;

/**
 * The config.json of a process in namespaces of its own: dockerd's defaults, limited to the daemon's own privileges.
 */
export function ociSpec(description: SpecDescription): object {
  const { process, namespaces, privileged, root } = description;
  const { devices, rules } = ociDevices(description);
  const capabilities = grantedCapabilities(process.capabilities);
  const seccomp = seccompOf(description, capabilities);
  const init = description.wantsInit ? INIT_PROGRAM : undefined;
  using places = placeMounts(root.visibleAt, ociMounts(description, init));
  return {
    ociVersion: '1.0.2',
    annotations: {
      ...description.annotations,
      ...(seccomp !== undefined && compiledSeccomp(seccomp)),
      ...(description.cgroup.bySystemd && annotationsForSystemd(description)),
    },
    hostname: namespaces.uts === 'host' ? '' : description.hostname,
    domainname: description.domainname,
    process: {
      ...ociProcess(process, 'container', capabilities),
      args: [...(init === undefined ? [] : [INIT_PATH, '--']), ...process.args],
      cwd: places.resolve(process.cwd), // crun does not create the target of a link
    },
    root: { path: root.path, readonly: root.isReadOnly },
    mounts: [...places.mounts, ...readOnlyCgroups(places.mounts, description.users !== undefined)],
    linux: {
      ...(!isRootless && { cgroupsPath: description.cgroup.path }),
      namespaces: namespaceList(description),
      ...(description.users !== undefined && {
        uidMappings: ociMappings(description.users.map.uids),
        gidMappings: ociMappings(description.users.map.gids),
      }),
      resources: ociResources(description.limits, privileged ? [{ allow: true, access: 'rwm' }] : rules),
      devices: (isRootless || description.users !== undefined ? [] : devices).map((device) => ({
        ...device,
        path: places.resolve(device.path),
      })),
      sysctl: description.sysctls,
      ...hiddenPaths(description),
      ...(seccomp !== undefined && { seccomp }),
      ...rootPropagation(description),
    },
    ...(description.hooks.length > 0 && { hooks: hooksByName(description) }),
  };
}

/** Programs that the runtime runs. */
function hooksByName({ hooks }: SpecDescription): object {
  const named = new Map<string, object[]>();
  for (const { hookName, ...hook } of hooks) named.set(hookName, [...(named.get(hookName) ?? []), hook]);
  return Object.fromEntries(named);
}

/** The process without its surroundings, as an exec needs it. Throws `StartFailed` when the kernel would refuse it. */
export function ociProcess(
  process: ProcessDescription,
  kind: 'container' | 'exec',
  capabilities = grantedCapabilities(process.capabilities),
): object {
  const { args, env, cwd, terminal, size, user, umask, noNewPrivileges, oomScoreAdj, ulimits, appArmorProfile } =
    process;
  if (isTooLong(process)) throw tooLong(kind, args[0]);
  const isRoot = user.uid === 0;
  return {
    user: { uid: user.uid, gid: user.gid, additionalGids: user.additionalGids, ...(umask !== undefined && { umask }) },
    capabilities: {
      bounding: capabilities,
      permitted: isRoot ? capabilities : [],
      effective: isRoot ? capabilities : [],
      inheritable: [],
    },
    noNewPrivileges,
    ...(appArmorProfile !== '' && { apparmorProfile: appArmorProfile }),
    oomScoreAdj: isRootless ? Math.max(oomScoreAdj, ownOomScore()) : oomScoreAdj, // set even if it is 0: the daemon's own differs
    rlimits: rlimitsOf(ulimits),
    terminal,
    ...(terminal && size !== undefined && { consoleSize: size }),
    args,
    env: withHome(env, user),
    cwd,
  };
}

/** The wanted capabilities, limited to the daemon's own. */
function grantedCapabilities(wanted: WantedCapabilities): string[] {
  held ??= effectiveCapabilities();
  return wantedCapabilities(wanted).filter((name) => held!.has(name));
}

/** The default of HOME, also instead of an empty one; the runtimes differ in when they set it. */
function withHome(environment: readonly string[], { home }: ContainerUser): string[] {
  if (hasHome(environment)) return [...environment];
  return [...environment.filter((variable) => variable !== 'HOME='), `HOME=${home}`];
}

export function hasHome(environment: readonly string[]): boolean {
  return environment.some((variable) => /^HOME=./s.test(variable));
}

/** By default crun puts the processes one cgroup deeper, where neither this daemon nor other tools look for them. */
function annotationsForSystemd({ limits }: SpecDescription): Record<string, string> {
  return { 'run.oci.systemd.subgroup': '', ...systemdAnnotations(limits, detectCgroups().version) };
}

/** Users cannot go below it. */
function ownOomScore(): number {
  return Number(readFileSync('/proc/self/oom_score_adj', 'utf8'));
}

function rootPropagation({ mounts, tmpfs }: SpecDescription): object {
  if (mounts.some(({ propagation }) => propagation.includes('slave'))) return { rootfsPropagation: 'slave' };
  if (mounts.some(({ propagation }) => propagation.includes('shared'))) return { rootfsPropagation: 'shared' };
  // By default crun makes all mounts private in the end.
  const isKept = Object.values(tmpfs).some((options) => /\br?(?:shared|unbindable)\b/.test(options));
  return isKept ? { rootfsPropagation: 'slave' } : {};
}

function seccompOf(
  { privileged, seccomp: wanted, keepsProject }: SpecDescription,
  capabilities: readonly string[],
): SeccompFilter | undefined {
  if (privileged || wanted === 'unconfined') return undefined;
  return wanted === undefined ? defaultSeccomp(capabilities, keepsProject) : customSeccomp(wanted, capabilities);
}

function namespaceList({ namespaces, users, ownCgroupNamespace }: SpecDescription): object[] {
  const { network, pid, ipc, uts } = namespaces;
  const user = users?.path ?? 'host';
  const list: object[] = [{ type: 'mount' }, ...(ownCgroupNamespace && !isRootless ? [{ type: 'cgroup' }] : [])];
  for (const [type, path] of Object.entries({ user, network, pid, ipc, uts })) {
    if (path === undefined) list.push({ type });
    else if (path !== 'host') list.push({ type, path });
  }
  return list;
}

/** Without CAP_SYS_RESOURCE no limit can be raised above the daemon's own: then its own is given. */
function rlimitsOf(ulimits: Ulimits): object[] {
  const asked = Object.entries(ulimits);
  if (asked.length === 0) return [];
  held ??= effectiveCapabilities();
  const limits = held.has('CAP_SYS_RESOURCE') && !isRootless ? undefined : hardLimits();
  return asked.map(([name, { soft, hard }]) => {
    const type = `RLIMIT_${name.toUpperCase()}`;
    const most = limits?.get(type)?.hard ?? Infinity;
    return { type, soft: capped(soft, most), hard: capped(hard, most) };
  });
}

/** "Unlimited" is the largest 64-bit number, which no number of JavaScript is. */
function capped(value: number, most: number): unknown {
  const granted = Math.min(value < 0 ? Infinity : value, most);
  return granted === Infinity ? JSON.rawJSON('18446744073709551615') : granted;
}
