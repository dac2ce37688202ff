import type { HostConfig, Ulimit } from '../containers/settings/host-config-schema.ts';
import type { Container } from '../containers/store.ts';
import { effectiveCapabilities, hardLimits } from '../host/privileges.ts';
import type { SeccompFilter } from '../host/seccomp.ts';
import type { Overlay } from '../layers/layers.ts';
import { wantedCapabilities } from './capabilities.ts';
import { hiddenPaths } from './hidden-paths.ts';
import { INIT_PATH, initProgram } from './init-program.ts';
import { ociMounts } from './mounts.ts';
import { ociDevices, ociResources } from './resources.ts';
import { compiledSeccomp, customSeccomp, defaultSeccomp } from './seccomp.ts';
import type { ContainerUser } from './user.ts';

const DEFAULT_PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Paths of namespaces to join; undefined is a new one, `host` is the host's. */
export type Namespaces = Readonly<Record<'network' | 'pid' | 'ipc' | 'uts', string | undefined>>;

export type SpecInput = Readonly<{
  container: Container;
  overlay: Overlay;
  user: ContainerUser;
  namespaces: Namespaces;
  /** Of the files that the daemon writes for the container; undefined when it uses another container's. */
  files: { hostname: string; hosts: string; resolvConf: string } | undefined;
  /** A host path instead of a /dev/shm of its own. */
  shm: string | undefined;
  /** Variables of the container's links. */
  linkVariables: readonly string[];
  cgroupPath: string;
  defaultUlimits: Ulimits;
}>;

export type Ulimits = Readonly<Record<string, { soft: number; hard: number }>>;
declare global {
  interface JSON {
    /** A piece of JSON as it is; the compiler's library does not know it yet. */
    rawJSON(text: string): object;
  }
}

let held: ReadonlySet<string> | undefined;

/** The container's config.json: dockerd's defaults, with nothing that the daemon itself does not hold. */
export function ociSpec(input: SpecInput): object {
  const { container, overlay, user, namespaces, files, shm } = input;
  const { config, hostConfig } = container;
  const { devices, rules } = ociDevices(hostConfig);
  const capabilities = grantedCapabilities(hostConfig);
  const seccomp = seccompOf(hostConfig, capabilities);
  const init = initProgram(hostConfig);
  const mounts = ociMounts(hostConfig, container.mounts, { files, shm, init });
  const [height = 0, width = 0] = hostConfig.ConsoleSize;
  return {
    ociVersion: '1.0.2',
    ...(seccomp !== undefined && { annotations: compiledSeccomp(seccomp) }),
    hostname: namespaces.uts === 'host' ? '' : config.Hostname,
    domainname: config.Domainname,
    process: {
      ...processFields(container, user, capabilities, input.defaultUlimits),
      terminal: config.Tty,
      ...(config.Tty && height > 0 && width > 0 && { consoleSize: { height, width } }),
      args: [...(init === undefined ? [] : [INIT_PATH, '--']), container.path, ...container.args],
      env: withHome(environmentOf(container, input.linkVariables), user),
      cwd: config.WorkingDir || '/',
    },
    root: { path: overlay.target, readonly: hostConfig.ReadonlyRootfs },
    mounts,
    linux: {
      cgroupsPath: input.cgroupPath,
      namespaces: namespaceList(namespaces, hostConfig),
      resources: ociResources(hostConfig, rules),
      devices,
      sysctl: hostConfig.Sysctls ?? {},
      ...hiddenPaths(hostConfig, mounts),
      ...(seccomp !== undefined && { seccomp }),
      ...(container.mounts.some(({ propagation }) => propagation.includes('shared')) && {
        rootfsPropagation: 'shared',
      }),
      ...(container.mounts.some(({ propagation }) => propagation.includes('slave')) && { rootfsPropagation: 'slave' }),
    },
  };
}

/** What a process of the container may do; exec'd ones get the same, or everything when they are privileged. */
export function processFields(
  { hostConfig }: Container,
  user: ContainerUser,
  capabilities: readonly string[],
  defaultUlimits: Ulimits,
): object {
  const isRoot = user.uid === 0;
  return {
    user: { uid: user.uid, gid: user.gid, additionalGids: user.additionalGids },
    capabilities: {
      bounding: capabilities,
      permitted: isRoot ? capabilities : [],
      effective: isRoot ? capabilities : [],
      inheritable: [],
    },
    noNewPrivileges: securityOption(hostConfig, 'no-new-privileges') !== undefined,
    oomScoreAdj: hostConfig.OomScoreAdj, // said also when it is 0: the daemon's own is another one
    rlimits: rlimitsOf(hostConfig.Ulimits ?? [], defaultUlimits),
  };
}

/** What the container asks for, as far as the daemon itself holds it. */
export function grantedCapabilities(
  hostConfig: Pick<HostConfig, 'CapAdd' | 'CapDrop' | 'Privileged'>,
  privileged = hostConfig.Privileged,
): string[] {
  held ??= effectiveCapabilities();
  return wantedCapabilities({ add: hostConfig.CapAdd, drop: hostConfig.CapDrop, privileged }).filter((name) =>
    held!.has(name),
  );
}

/** The environment of the container's processes. */
export function environmentOf({ config }: Container, linkVariables: readonly string[], tty = config.Tty): string[] {
  const defaults = [DEFAULT_PATH, `HOSTNAME=${config.Hostname}`, ...(tty ? ['TERM=xterm'] : []), ...linkVariables];
  // A name alone takes a default away, but no value that the client gives elsewhere.
  const bare = new Set(config.Env.filter((variable) => !variable.includes('=')));
  const kept = defaults.filter((variable) => !bare.has(nameOf(variable)));
  const given = config.Env.filter((variable) => variable.includes('='));
  return [...new Map([...kept, ...given].map((variable) => [nameOf(variable), variable])).values()];
}

function nameOf(variable: string): string {
  return variable.split('=', 1)[0]!;
}

/** A process that is told nothing else finds its home here; the runtimes differ in when they say so. */
export function withHome(environment: readonly string[], { home }: ContainerUser): string[] {
  return hasHome(environment) ? [...environment] : [...environment, `HOME=${home}`];
}

export function hasHome(environment: readonly string[]): boolean {
  return environment.some((variable) => variable.startsWith('HOME='));
}

/** The value of a `SecurityOpt` such as `seccomp=unconfined` or `no-new-privileges`; '' where it has none. */
export function securityOption({ SecurityOpt }: Pick<HostConfig, 'SecurityOpt'>, name: string): string | undefined {
  for (const option of SecurityOpt ?? []) {
    const match = /^([^=:]+)(?:[=:]([\s\S]*))?$/.exec(option);
    if (match?.[1] === name && match[2] !== 'false') return match[2] ?? '';
  }
  return undefined;
}

function seccompOf(hostConfig: HostConfig, capabilities: readonly string[]): SeccompFilter | undefined {
  const wanted = securityOption(hostConfig, 'seccomp');
  if (hostConfig.Privileged || wanted === 'unconfined') return undefined;
  return wanted === undefined ? defaultSeccomp(capabilities) : customSeccomp(wanted, capabilities);
}

function namespaceList({ network, pid, ipc, uts }: Namespaces, { CgroupnsMode }: HostConfig): object[] {
  const list: object[] = [{ type: 'mount' }, ...(CgroupnsMode === 'private' ? [{ type: 'cgroup' }] : [])];
  for (const [type, path] of Object.entries({ network, pid, ipc, uts })) {
    if (path === undefined) list.push({ type });
    else if (path !== 'host') list.push({ type, path });
  }
  return list;
}

/** Without CAP_SYS_RESOURCE no limit can be raised above the daemon's own: then its own is given. */
function rlimitsOf(wanted: readonly Ulimit[], defaults: Ulimits): object[] {
  const asked = new Map(Object.entries(defaults));
  for (const { Name, Soft = 0, Hard = Soft } of wanted) asked.set(Name, { soft: Soft, hard: Hard });
  if (asked.size === 0) return [];
  held ??= effectiveCapabilities();
  const limits = held.has('CAP_SYS_RESOURCE') ? undefined : hardLimits();
  return [...asked].map(([name, { soft, hard }]) => {
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
