import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { arch, cpus, hostname, release, totalmem } from 'node:os';

import type { Config } from '../config/config.ts';
import { isAlive } from '../containers/state.ts';
import type { ContainerStore } from '../containers/store.ts';
import type { Events } from '../events/events.ts';
import type { ImageStore } from '../images/store.ts';
import type { Clock } from '../lib/clock.ts';
import { hasCode } from '../lib/errors.ts';
import type { Runtimes } from '../runtime/runtimes.ts';
import { VERSION } from '../version.ts';
import type { Info, Version } from './schema.ts';

type Needs = {
  clock: Clock;
  config: Config;
  containers: ContainerStore;
  events: Events;
  images: ImageStore;
  runtimes: Runtimes;
  daemonId: string;
};

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' };
const GO_ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** GET /version. */
export function versionOf(): Version {
  return {
    Version: VERSION,
    ApiVersion: '1.24',
    MinAPIVersion: '1.12',
    GitCommit: 'gantry',
    GoVersion: `node ${process.version}`,
    Os: 'linux',
    Arch: GO_ARCHITECTURES[arch()] ?? arch(),
    KernelVersion: release(),
    BuildTime: '',
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
      ['Backing Filesystem', 'extfs'],
      ['Supports d_type', 'true'],
      ['Native Overlay Diff', 'true'],
    ],
    SystemStatus: null,
    Plugins: {
      Volume: ['local'],
      Network: ['bridge', 'host', 'null'],
      Authorization: null,
      Log: ['json-file', 'none'],
    },
    MemoryLimit: hasFile('memory/memory.limit_in_bytes', 'memory.max'),
    SwapLimit: hasFile('memory/memory.memsw.limit_in_bytes', 'memory.swap.max'),
    KernelMemory: false,
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
    OperatingSystem: operatingSystem(),
    OSType: 'linux',
    Architecture: ARCHITECTURES[arch()] ?? arch(),
    IndexServerAddress: 'https://index.docker.io/v1/',
    RegistryConfig: { InsecureRegistryCIDRs: ['127.0.0.0/8'], IndexConfigs: {}, Mirrors: [] },
    InitPath: '',
    InitSha1: '',
    NCPU: cpus().length,
    MemTotal: totalmem(),
    EngineRootDir: config.dataRoot,
    DockerRootDir: config.dataRoot,
    HttpProxy: process.env.HTTP_PROXY ?? '',
    HttpsProxy: process.env.HTTPS_PROXY ?? '',
    NoProxy: process.env.NO_PROXY ?? '',
    Name: hostname(),
    Labels: config.labels.length === 0 ? null : config.labels,
    ExperimentalBuild: false,
    ServerVersion: VERSION,
    ClusterStore: '',
    ClusterAdvertise: '',
    Runtimes: Object.fromEntries(runtimes.all().map(({ name, path }) => [name, { path }])),
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
  };
}

function hasFile(old: string, unified: string): boolean {
  return existsSync(`/sys/fs/cgroup/${old}`) || existsSync(`/sys/fs/cgroup/${unified}`);
}

function operatingSystem(): string {
  return /^PRETTY_NAME="?([^"\n]+)"?$/m.exec(readText('/etc/os-release'))?.[1] ?? 'Linux';
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return '';
    throw error;
  }
}
