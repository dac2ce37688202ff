import { EngineError } from '../lib/errors.ts';
import { shortId } from '../lib/ids.ts';
import type { DescribedMount, Limits, SpecDescription } from '../oci/description.ts';
import type { PluginConfig, PluginMount } from './plugin-config.ts';

/** The folder for the plugin's socket, as the plugin sees it. */
const SOCKETS = '/run/docker/plugins';
const PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const PROPAGATIONS = ['private', 'rprivate', 'shared', 'rshared', 'slave', 'rslave'];
const SHM_BYTES = 64 * 1024 * 1024;

/** As in docker, there are no limits. */
const UNLIMITED: Limits = {
  memoryBytes: 0,
  memoryReservationBytes: 0,
  memorySwapBytes: 0,
  kernelMemoryBytes: 0,
  kernelTcpBytes: 0,
  swappiness: -1,
  oomKillDisable: false,
  cpuShares: 0,
  cpuQuotaUs: 0,
  cpuPeriodUs: 0,
  realtimePeriodUs: 0,
  realtimeRuntimeUs: 0,
  nanoCpus: 0,
  cpusetCpus: '',
  cpusetMems: '',
  pids: 0,
  blkioWeight: 0,
  blkioWeightDevices: [],
  readBps: [],
  writeBps: [],
  readIops: [],
  writeIops: [],
};

type Around = Readonly<{
  id: string;
  /** Paths of the machine; mounts of the plugin below `propagated` are visible to the machine. */
  root: string;
  sockets: string;
  propagated: string | undefined;
  cgroup: SpecDescription['cgroup'];
}>;

/** The process of a plugin and its surroundings. Throws `failed` for a mount of an unknown kind. */
export function describePlugin(config: PluginConfig, around: Around): SpecDescription {
  const { Linux, Network, IpcHost, PidHost } = config;
  const network = Network?.Type ?? '';
  return {
    process: {
      args: [...config.Entrypoint, ...(config.Args?.Value ?? [])],
      env: [PATH, ...(config.Env ?? []).map(({ Name, Value }) => `${Name}=${Value ?? ''}`)],
      cwd: config.WorkDir || '/',
      terminal: false,
      user: { uid: config.User?.UID ?? 0, gid: config.User?.GID ?? 0, additionalGids: [], home: '/' },
      capabilities: { add: Linux?.Capabilities ?? null, drop: null, privileged: false },
      noNewPrivileges: false,
      appArmorProfile: '',
      oomScoreAdj: 0,
      ulimits: {},
    },
    wantsInit: false,
    hostname: shortId(around.id),
    domainname: '',
    root: { path: around.root, visibleAt: around.root, isReadOnly: false },
    privileged: false,
    namespaces: {
      network: network === 'host' ? 'host' : undefined,
      pid: PidHost ? 'host' : undefined,
      ipc: IpcHost ? 'host' : undefined,
      uts: undefined,
    },
    users: undefined,
    ownCgroupNamespace: false,
    cgroup: around.cgroup,
    mounts: mountsOf(config, around, network),
    tmpfs: Object.fromEntries(
      (config.Mounts ?? []).filter(isTmpfs).map(({ Destination, Options }) => [Destination, (Options ?? []).join(',')]),
    ),
    files: undefined,
    shm: IpcHost ? { path: '/dev/shm', isHosts: true } : { sizeBytes: SHM_BYTES },
    limits: UNLIMITED,
    devices: (Linux?.Devices ?? [])
      .map(({ Path }) => Path ?? '')
      .filter((path) => path !== '')
      .map((path) => ({ path, inContainer: path, access: 'rwm' })),
    deviceRules: Linux?.AllowAllDevices ? ['a *:* rwm'] : [],
    sysctls: {},
    deviceMounts: [],
    hooks: [],
    annotations: {},
    writableCgroups: false,
    maskedPaths: undefined,
    readonlyPaths: undefined,
    seccomp: 'unconfined', // as in docker: the privileges say what a plugin may do
    keepsProject: false,
  };
}

function mountsOf({ PropagatedMount, Mounts }: PluginConfig, around: Around, network: string): DescribedMount[] {
  const shared = { type: 'bind', writable: true, propagation: 'rshared' } as const;
  const resolver = { type: 'bind', writable: false, propagation: '' } as const;
  return [
    { ...shared, source: around.sockets, destination: SOCKETS },
    ...(around.propagated === undefined
      ? []
      : [{ ...shared, source: around.propagated, destination: PropagatedMount! }]),
    ...(network === ''
      ? []
      : ['/etc/hosts', '/etc/resolv.conf'].map((path) => ({ ...resolver, source: path, destination: path }))),
    ...(Mounts ?? []).filter((mount) => !isTmpfs(mount)).map(bindOf),
  ];
}

function isTmpfs({ Type }: PluginMount): boolean {
  return Type === 'tmpfs';
}

function bindOf({ Type, Source, Destination, Options }: PluginMount): DescribedMount {
  if ((Type !== 'bind' && (Type ?? '') !== '') || typeof Source !== 'string' || !Source.startsWith('/')) {
    throw new EngineError('failed', `the plugin's mount on ${Destination} is neither a tmpfs nor a bind of a path`);
  }
  const options = Options ?? [];
  return {
    type: 'bind',
    source: Source,
    destination: Destination,
    writable: !options.includes('ro'),
    propagation: options.findLast((option) => PROPAGATIONS.includes(option)) ?? '',
    ...(!options.includes('rbind') && options.includes('bind') && { recursive: false }),
  };
}
