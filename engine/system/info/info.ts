import { readdirSync } from 'node:fs';
import { arch, release } from 'node:os';

import { presentGeneric } from '../../cluster/services/task-template/resources.ts';
import type { Config, RuntimeConfig } from '../../config/daemon-config.ts';
import { isAlive } from '../../containers/state.ts';
import type { ContainerStore } from '../../containers/store.ts';
import type { Engine } from '../../engine.ts';
import { filesystemOf } from '../../host/files/statfs.ts';
import { isRootless } from '../../host/rootless.ts';
import { parseGenericResources } from '../../lib/notations/generic-resources.ts';
import { proxySettings, shownProxy } from '../../lib/proxies.ts';
import { LOG_DRIVERS } from '../../logs/drivers.ts';
import type { RuntimeFeatures } from '../../runtime/features.ts';
import { VERSION } from '../../version.ts';
import type { Info, Version } from '../schema.ts';
import { machineInfo } from './machine.ts';
import { warningsOf } from './warnings.ts';

export type InfoNeeds = Pick<
  Engine,
  'clock' | 'config' | 'containers' | 'events' | 'idMap' | 'images' | 'runtimes' | 'daemonId' | 'volumeDrivers'
>;

const GO_ARCHITECTURES: ReadonlyMap<string, string> = new Map(Object.entries({ x64: 'amd64', arm64: 'arm64' }));

/** GET /version. */
export function versionOf({ config }: Pick<InfoNeeds, 'config'>): Version {
  const facts = {
    ApiVersion: config.maxApiVersion,
    MinAPIVersion: config.minApiVersion,
    GitCommit: '',
    GoVersion: `node ${process.version}`,
    Os: 'linux',
    Arch: GO_ARCHITECTURES.get(arch()) ?? arch(),
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

/** GET /info without the cluster: the specification's fields, and those that the docker command line prints. */
export function infoOf(engine: InfoNeeds): Omit<Info, 'Swarm' | 'DiscoveredDevices'> {
  const { config, runtimes } = engine;
  const proxies = proxySettings();
  const machine = machineInfo({ mapsUsers: engine.idMap !== undefined });
  const warnings = warningsOf(machine, config);
  const pools = config.defaultAddressPools.map(poolOf);
  return {
    ...NOT_HERE,
    ...machine,
    GenericResources: genericResourcesOf(config),
    ...(pools.length > 0 && { DefaultAddressPools: pools }),
    Warnings: warnings.length === 0 ? null : warnings,
    ...containerCounts(engine.containers),
    ID: engine.daemonId,
    CDISpecDirs: [...config.cdiSpecDirs],
    Images: engine.images.all().length,
    RegistryConfig: registryConfig(config),
    FirewallBackend: { Driver: 'nftables' },
    Driver: 'overlay2',
    DriverStatus: [
      ['Backing Filesystem', backingFilesystem(config.dataRoot)],
      ['Supports d_type', 'true'],
      ['Native Overlay Diff', 'true'],
      ['userxattr', 'false'],
    ],
    Plugins: {
      Volume: engine.volumeDrivers.names,
      Network: ['bridge', 'host', 'ipvlan', 'macvlan', 'null'],
      Authorization: config.authorizationPlugins.length === 0 ? null : [...config.authorizationPlugins],
      Log: [...LOG_DRIVERS],
    },
    Debug: config.debug,
    NGoroutines: process.getActiveResourcesInfo().length, // handles that wait for something, like goroutines
    NFd: readdirSync('/proc/self/fd').length,
    SystemTime: engine.clock.now().toString(),
    LoggingDriver: config.logDriver,
    NEventsListener: engine.events.listenerCount,
    EngineRootDir: config.dataRoot,
    DockerRootDir: config.dataRoot,
    HttpProxy: shownProxy(proxies.http),
    HttpsProxy: shownProxy(proxies.https),
    NoProxy: proxies.none,
    Labels: [...config.labels],
    ServerVersion: VERSION,
    Runtimes: Object.fromEntries(runtimes.all().map(({ name, settings }) => [name, runtimeOf(settings)])),
    DefaultRuntime: runtimes.defaultName,
    LiveRestoreEnabled: config.liveRestore,
    CgroupDriver: isRootless ? 'none' : config.cgroupDriver,
    InitBinary: 'docker-init',
  };
}

function registryConfig({ insecureRegistries, registryMirrors }: Config): Info['RegistryConfig'] {
  const [ranges, hosts] = [true, false].map((isRange) =>
    insecureRegistries.filter((registry) => registry.includes('/') === isRange),
  ) as [string[], string[]];
  const mirrors = registryMirrors.map((mirror) => (mirror.endsWith('/') ? mirror : `${mirror}/`));
  return {
    AllowNondistributableArtifactsCIDRs: [],
    AllowNondistributableArtifactsHostnames: [],
    InsecureRegistryCIDRs: [...ranges, '127.0.0.0/8'],
    IndexConfigs: {
      'docker.io': { Name: 'docker.io', Mirrors: mirrors, Secure: true, Official: true },
      ...Object.fromEntries(hosts.map((host) => [host, { Name: host, Mirrors: [], Secure: false, Official: false }])),
    },
    Mirrors: mirrors,
  };
}

/** Features that this engine lacks, in dockerd's words. */
const NOT_HERE = {
  SystemStatus: null,
  IndexServerAddress: 'https://index.docker.io/v1/',
  InitPath: '',
  InitSha1: '',
  ExperimentalBuild: false,
  ClusterStore: '',
  ClusterAdvertise: '',
  Isolation: '',
  ContainerdCommit: { ID: '', Expected: '' },
  RuncCommit: { ID: '', Expected: '' },
  InitCommit: { ID: '', Expected: '' },
  ExecutionDriver: '<not supported>',
} satisfies Partial<Info>;

type Counts = Pick<Info, 'Containers' | 'ContainersRunning' | 'ContainersPaused' | 'ContainersStopped'>;

function containerCounts(store: ContainerStore): Counts {
  const containers = store.all();
  const paused = containers.filter(({ state }) => state.status === 'paused').length;
  const alive = containers.filter(({ state }) => isAlive(state)).length;
  return {
    Containers: containers.length,
    ContainersRunning: alive - paused,
    ContainersPaused: paused,
    ContainersStopped: containers.length - alive,
  };
}

/** `base=10.10.0.0/16,size=24` */
function poolOf(text: string): { Base: string; Size: number } {
  const [base = '', size = ''] = text.split(',').map((part) => part.replace(/^\w+=/, ''));
  return { Base: base, Size: Number(size) };
}

/** Adds the features of the runtimes that describe themselves. */
export async function withFeatures(runtimes: Info['Runtimes'], features: RuntimeFeatures): Promise<Info['Runtimes']> {
  const entries = Object.entries(runtimes).map(async ([name, runtime]) => {
    const text = await features.of(runtime.path);
    return [name, text === undefined ? runtime : { ...runtime, status: { [FEATURES_KEY]: text } }] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

const FEATURES_KEY = 'org.opencontainers.runtime-spec.features';

function runtimeOf({ path, runtimeArgs }: RuntimeConfig): Info['Runtimes'][string] {
  return runtimeArgs.length === 0 ? { path } : { path, runtimeArgs: [...runtimeArgs] };
}

/** In dockerd's words. */
function backingFilesystem(folder: string): string {
  const { kind } = filesystemOf(folder);
  return kind === 'ext' ? 'extfs' : kind;
}

/** As dockerd, null without any. */
function genericResourcesOf({ nodeGenericResources }: Config): object[] | null {
  const all = parseGenericResources(nodeGenericResources);
  return all.length === 0 ? null : all.map(presentGeneric);
}
