import type { DeviceEdits } from '../../../oci/cdi/devices.ts';
import type { ProcessDescription, SpecDescription, Ulimits, WantedCapabilities } from '../../../oci/description.ts';
import type { ContainerUser } from '../../../oci/user.ts';
import type { HostConfig } from '../../settings/host-config/host-config-schema.ts';
import { writableLimit } from '../../settings/host-config/writable-limit.ts';
import { securityOptions } from '../../settings/security-option.ts';
import type { Container } from '../../store.ts';
import { limitsOf } from '../limits-of.ts';

const DEFAULT_PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The settings that a process takes from its container; an exec differs in some. */
export function processOf(
  { config, hostConfig, appArmorProfile = '' }: Container,
  user: ContainerUser,
  defaultUlimits: Ulimits,
): Omit<ProcessDescription, 'args' | 'env'> {
  const [height = 0, width = 0] = hostConfig.ConsoleSize;
  return {
    cwd: config.WorkingDir || '/',
    terminal: config.Tty,
    ...(height > 0 && width > 0 && { size: { height, width } }),
    user,
    capabilities: capabilitiesOf(hostConfig),
    noNewPrivileges: securityOptions(hostConfig).noNewPrivileges,
    appArmorProfile,
    oomScoreAdj: hostConfig.OomScoreAdj,
    ulimits: ulimitsOf(hostConfig, defaultUlimits),
    umask: hostConfig.Umask,
  };
}

type Around = Pick<SpecDescription, 'namespaces' | 'users' | 'files' | 'cgroup'> & {
  user: ContainerUser;
  /** Paths of the root: for the runtime, and for this daemon. */
  root: Readonly<{ path: string; visibleAt: string }>;
  /** A host path instead of a /dev/shm of its own. */
  shm: string | undefined;
  /** Variables of the container's links. */
  linkVariables: readonly string[];
  defaultUlimits: Ulimits;
  /** The edits for devices that vendors describe. */
  devices: DeviceEdits;
};

/** The container's first process and its surroundings. */
export function describeContainer(container: Container, around: Around): SpecDescription {
  const { config, hostConfig, path, args, mounts } = container;
  const { namespaces, users, files, cgroup, user, root, shm, linkVariables, defaultUlimits, devices } = around;
  return {
    process: {
      ...processOf(container, user, defaultUlimits),
      args: [path, ...args],
      env: [...environmentOf(container, linkVariables), ...devices.env],
    },
    wantsInit: hostConfig.Init === true && hostConfig.PidMode === '', // else another process is the first one anyway
    hostname: config.Hostname,
    domainname: config.Domainname,
    root: { ...root, isReadOnly: hostConfig.ReadonlyRootfs },
    privileged: hostConfig.Privileged,
    namespaces,
    users,
    ownCgroupNamespace: hostConfig.CgroupnsMode === 'private',
    cgroup,
    mounts,
    tmpfs: hostConfig.Tmpfs ?? {},
    files,
    shm: sharedMemory(hostConfig, shm),
    limits: limitsOf(hostConfig),
    devices: [
      ...(hostConfig.Devices ?? []).map(({ PathOnHost, PathInContainer, CgroupPermissions }) => ({
        path: PathOnHost,
        inContainer: PathInContainer || PathOnHost,
        access: CgroupPermissions || 'rwm',
      })),
      ...devices.deviceNodes.map(({ path: inContainer, hostPath, permissions, fileMode, uid, gid }) => ({
        ...{ path: hostPath || inContainer, inContainer, access: permissions || 'rwm' },
        ...{ fileMode, uid, gid },
      })),
    ],
    deviceRules: hostConfig.DeviceCgroupRules ?? [],
    deviceMounts: devices.mounts,
    hooks: devices.hooks,
    sysctls: hostConfig.Sysctls ?? {},
    annotations: hostConfig.Annotations ?? {},
    writableCgroups: securityOptions(hostConfig).writableCgroups,
    maskedPaths: hostConfig.MaskedPaths ?? undefined,
    readonlyPaths: hostConfig.ReadonlyPaths ?? undefined,
    seccomp: securityOptions(hostConfig).seccomp || undefined,
    keepsProject: writableLimit(hostConfig.StorageOpt) !== undefined,
  };
}

/** The environment of the container's processes. */
export function environmentOf({ config }: Container, linkVariables: readonly string[], tty = config.Tty): string[] {
  const defaults = [DEFAULT_PATH, `HOSTNAME=${config.Hostname}`, ...(tty ? ['TERM=xterm'] : []), ...linkVariables];
  // A name alone removes a default, but not a value of the client.
  const bare = new Set(config.Env.filter((variable) => !variable.includes('=')));
  const kept = defaults.filter((variable) => !bare.has(nameOf(variable)));
  const given = config.Env.filter((variable) => variable.includes('='));
  return [...new Map([...kept, ...given].map((variable) => [nameOf(variable), variable])).values()];
}

function nameOf(variable: string): string {
  return variable.split('=', 1)[0]!;
}

function capabilitiesOf({ CapAdd, CapDrop, Privileged }: HostConfig): WantedCapabilities {
  return { add: CapAdd, drop: CapDrop, privileged: Privileged };
}

function ulimitsOf({ Ulimits: wanted }: HostConfig, defaults: Ulimits): Ulimits {
  const own = (wanted ?? []).map(({ Name, Soft = 0, Hard = Soft }) => [Name, { soft: Soft, hard: Hard }] as const);
  return { ...defaults, ...Object.fromEntries(own) };
}

function sharedMemory({ IpcMode, ShmSize }: HostConfig, path: string | undefined): SpecDescription['shm'] {
  if (path !== undefined) return { path, isHosts: IpcMode === 'host' };
  return IpcMode === 'none' ? undefined : { sizeBytes: ShmSize };
}
