import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { arch, cpus, hostname, release, totalmem } from 'node:os';

import type { Config, RuntimeConfig } from '../config/daemon-config.ts';
import { isAlive } from '../containers/state.ts';
import type { ContainerStore } from '../containers/store.ts';
import type { Events } from '../events/events.ts';
import { filesystemOf } from '../host/statfs.ts';
import type { ImageStore } from '../images/store.ts';
import type { Clock } from '../lib/clock.ts';
import { hasCode } from '../lib/errors.ts';
import { LOG_DRIVERS } from '../logs/drivers.ts';
import type { Runtimes } from '../runtime/runtimes.ts';
import { VERSION } from '../version.ts';
import type { VolumeDrivers } from '../volumes/drivers.ts';
import type { Info, Version } from './schema.ts';

type Needs = {
  clock: Clock;
  config: Config;
  containers: ContainerStore;
  events: Events;
  images: ImageStore;
  runtimes: Runtimes;
  daemonId: string;
  volumeDrivers: VolumeDrivers;
};

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' };
const GO_ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** GET /version. */
export function versionOf({ config }: Pick<Needs, 'config'>): Version {
  const facts = {
    ApiVersion: config.maxApiVersion,
    MinAPIVersion: config.minApiVersion,
    GitCommit: '',
    GoVersion: `node ${process.version}`,
    Os: 'linux',
    Arch: GO_ARCHITECTURES[arch()] ?? arch(),
    KernelVersion: release(),
    BuildTime: '',
  };
  return {
    Platform: { Name: 'Gantry' },
    Components: [{ Name: 'Engine', Version: VERSION, Details: { ...facts, Experimental: 'false' } }],
    Version: VERSION,
    ...facts,
    Experimental: false,
  };
}

/** GET /info: the specification's fields, and those that the docker command line prints. */
export function infoOf(engine: Needs): Info {
  const { config, runtimes } = engine;
  const containers = engine.containers.all();
  const paused = containers.filter(({ state }) => state.status === 'paused').length;
  const alive = containers.filter(({ state }) => isAlive(state)).length;
  return {
    ID: engine.daemonId,
    Containers: containers.length,
    ContainersRunning: alive - paused,
    ContainersPaused: paused,
    ContainersStopped: containers.length - alive,
    Images: engine.images.all().length,
    Driver: 'overlay2',
    DriverStatus: [
      ['Backing Filesystem', backingFilesystem(config.dataRoot)],
      ['Supports d_type', 'true'],
      ['Native Overlay Diff', 'true'],
    ],
    SystemStatus: null,
    Plugins: {
      Volume: engine.volumeDrivers.names,
      Network: ['bridge', 'host', 'null'],
      Authorization: null,
      Log: [...LOG_DRIVERS],
    },
    MemoryLimit: hasFile('memory/memory.limit_in_bytes', 'memory.max'),
    SwapLimit: hasFile('memory/memory.memsw.limit_in_bytes', 'memory.swap.max'),
    KernelMemory: hasFile('memory/memory.kmem.limit_in_bytes'),
    KernelMemoryTCP: hasFile('memory/memory.kmem.tcp.limit_in_bytes'),
    CpuCfsPeriod: hasFile('cpu/cpu.cfs_period_us', 'cpu.max'),
    CpuCfsQuota: hasFile('cpu/cpu.cfs_quota_us', 'cpu.max'),
    CPUShares: hasFile('cpu/cpu.shares', 'cpu.weight'),
    CPUSet: hasFile('cpuset/cpuset.cpus', 'cpuset.cpus'),
    PidsLimit: existsSync('/sys/fs/cgroup/pids') || existsSync('/sys/fs/cgroup/cgroup.controllers'),
    OomKillDisable: existsSync('/sys/fs/cgroup/memory/memory.oom_control'),
    IPv4Forwarding: readText('/proc/sys/net/ipv4/ip_forward').trim() === '1',
    BridgeNfIptables: readText('/proc/sys/net/bridge/bridge-nf-call-iptables').trim() === '1',
    BridgeNfIp6tables: readText('/proc/sys/net/bridge/bridge-nf-call-ip6tables').trim() === '1',
    Debug: config.debug,
    NFd: readdirSync('/proc/self/fd').length,
    NGoroutines: 1,
    SystemTime: engine.clock.now().toString(),
    LoggingDriver: config.logDriver,
    CgroupDriver: 'cgroupfs',
    CgroupVersion: existsSync('/sys/fs/cgroup/cgroup.controllers') ? '2' : '1',
    NEventsListener: engine.events.listenerCount,
    KernelVersion: release(),
    OperatingSystem: osRelease('PRETTY_NAME') ?? 'Linux',
    OSVersion: osRelease('VERSION_ID') ?? '',
    OSType: 'linux',
    Architecture: ARCHITECTURES[arch()] ?? arch(),
    IndexServerAddress: 'https://index.docker.io/v1/',
    RegistryConfig: {
      AllowNondistributableArtifactsCIDRs: [],
      AllowNondistributableArtifactsHostnames: [],
      InsecureRegistryCIDRs: ['127.0.0.0/8'],
      IndexConfigs: { 'docker.io': { Name: 'docker.io', Mirrors: [], Secure: true, Official: true } },
      Mirrors: [],
    },
    InitPath: '',
    InitSha1: '',
    NCPU: cpus().length,
    MemTotal: totalmem(),
    GenericResources: null,
    EngineRootDir: config.dataRoot,
    DockerRootDir: config.dataRoot,
    HttpProxy: process.env.HTTP_PROXY ?? '',
    HttpsProxy: process.env.HTTPS_PROXY ?? '',
    NoProxy: process.env.NO_PROXY ?? '',
    Name: hostname(),
    Labels: [...config.labels],
    ExperimentalBuild: false,
    ServerVersion: VERSION,
    ClusterStore: '',
    ClusterAdvertise: '',
    Runtimes: Object.fromEntries(runtimes.all().map(({ name, settings }) => [name, runtimeOf(settings)])),
    DefaultRuntime: runtimes.defaultName,
    Swarm: {
      NodeID: '',
      NodeAddr: '',
      LocalNodeState: 'inactive',
      ControlAvailable: false,
      Error: '',
      RemoteManagers: null,
    },
    LiveRestoreEnabled: config.liveRestore,
    Isolation: '',
    InitBinary: '',
    ContainerdCommit: { ID: '', Expected: '' },
    RuncCommit: { ID: '', Expected: '' },
    InitCommit: { ID: '', Expected: '' },
    SecurityOptions: ['seccomp'],
    Warnings: null,
    ExecutionDriver: '<not supported>',
  };
}

function runtimeOf({ path, runtimeArgs }: RuntimeConfig): Info['Runtimes'][string] {
  return runtimeArgs.length === 0 ? { path } : { path, runtimeArgs: [...runtimeArgs] };
}

function hasFile(...files: string[]): boolean {
  return files.some((file) => existsSync(`/sys/fs/cgroup/${file}`));
}

/** In dockerd's words. */
function backingFilesystem(folder: string): string {
  const { kind } = filesystemOf(folder);
  return kind === 'ext' ? 'extfs' : kind;
}

function osRelease(key: string): string | undefined {
  return new RegExp(`^${key}="?([^"\\n]+)"?$`, 'm').exec(readText('/etc/os-release'))?.[1];
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return '';
    throw error;
  }
}
