import { usualCgroupDriver, type CgroupDriver } from '../host/cgroups/cgroup-driver.ts';
import { chosenCgroupDriver } from './cgroup-driver.ts';
import { type RateLimits, readRateLimits } from './rate-limits.ts';
import type { ConfigFile, LogLevel } from './schema.ts';

export type Ulimit = Readonly<{ soft: number; hard: number }>;
export type RuntimeConfig = Readonly<{ path: string; runtimeArgs: readonly string[] }>;

/** The daemon's settings: complete, checked, frozen. */
export type Config = Readonly<{
  hosts: readonly string[];
  dataRoot: string;
  execRoot: string;
  pidfile: string;
  group: string;
  /** Name of the bridge, or `none`. */
  bridge: string;
  /** Such as `172.30.0.1/16`; empty: chosen by the daemon. */
  bip: string;
  ipv6: boolean;
  /** Such as `fd00:1::/64`; empty without `ipv6`. */
  fixedCidrV6: string;
  /** Such as `base=10.10.0.0/16,size=24`; empty: the usual private ranges. */
  defaultAddressPools: readonly string[];
  /** 0: chosen by the daemon. */
  mtu: number;
  tls: boolean;
  tlsverify: boolean;
  tlscacert: string;
  tlscert: string;
  tlskey: string;
  insecureTcp: boolean;
  /** Undefined: clients over TCP are not limited. */
  apiRateLimit: RateLimits | undefined;
  /** Such as `127.0.0.1:9323`; empty: none. */
  metricsAddr: string;
  /** Such as `127.0.0.1:9000`; empty: on demand alone. */
  page: string;
  pageReadOnly: boolean;
  minApiVersion: string;
  maxApiVersion: string;
  defaultApiVersion: string;
  /** Hosts and CIDRs. */
  cdiSpecDirs: readonly string[];
  insecureRegistries: readonly string[];
  registryMirrors: readonly string[];
  /** The URL of the index that is searched. */
  searchIndex: string;
  /** A folder as dockerd's `certs.d`. */
  registryCertificates: string;
  maxConcurrentDownloads: number;
  maxConcurrentUploads: number;
  apiCorsHeader: string;
  logLevel: LogLevel;
  debug: boolean;
  logDriver: string;
  logOpts: Readonly<Record<string, string>>;
  dns: readonly string[];
  dnsOpts: readonly string[];
  dnsSearch: readonly string[];
  defaultUlimits: Readonly<Record<string, Ulimit>>;
  authorizationPlugins: readonly string[];
  pluginFolders: readonly string[];
  labels: readonly string[];
  nodeGenericResources: readonly string[];
  runtimes: Readonly<Record<string, RuntimeConfig>>;
  /** Empty: chosen by the daemon. */
  defaultRuntime: string;
  cgroupDriver: CgroupDriver;
  /** The default of containers; empty: the driver's. */
  cgroupParent: string;
  /** `user[:group]`, `default`, or empty: containers have the ids of the host. */
  usernsRemap: string;
  /** The real-time share of the cgroups above those of containers; 0: unchanged. */
  realtime: Readonly<{ periodUs: number; runtimeUs: number }>;
  liveRestore: boolean;
  /** Bytes of all caches of `RUN --mount` together. */
  buildCacheBytes: number;
  shutdownTimeoutSeconds: number;
}>;

/** The settings under the names that the code uses; everything in it is frozen, so that it can be shared. */
export function toConfig(file: ConfigFile): Config {
  return deepFreeze({
    hosts: file.hosts,
    dataRoot: file['data-root'],
    execRoot: file['exec-root'],
    pidfile: file.pidfile,
    group: file.group,
    bridge: file.bridge,
    bip: file.bip,
    ipv6: file.ipv6,
    fixedCidrV6: file['fixed-cidr-v6'],
    defaultAddressPools: file['default-address-pools'],
    mtu: file.mtu,
    tls: file.tls || file.tlsverify,
    tlsverify: file.tlsverify,
    tlscacert: file.tlscacert,
    tlscert: file.tlscert,
    tlskey: file.tlskey,
    insecureTcp: file['insecure-tcp'],
    apiRateLimit: file['api-rate-limit'] === '' ? undefined : readRateLimits(file['api-rate-limit']),
    metricsAddr: file['metrics-addr'],
    page: file.page,
    pageReadOnly: file['page-read-only'],
    minApiVersion: file['min-api-version'],
    maxApiVersion: file['max-api-version'],
    defaultApiVersion: file['default-api-version'] || file['max-api-version'],
    cdiSpecDirs: file['cdi-spec-dirs'],
    insecureRegistries: file['insecure-registries'],
    registryMirrors: file['registry-mirrors'],
    searchIndex: file['search-index'],
    registryCertificates: file['registry-certs-dir'],
    maxConcurrentDownloads: file['max-concurrent-downloads'],
    maxConcurrentUploads: file['max-concurrent-uploads'],
    apiCorsHeader: file['api-cors-header'],
    logLevel: file.debug ? 'debug' : (file['log-level'] as LogLevel),
    debug: file.debug || file['log-level'] === 'debug',
    logDriver: file['log-driver'],
    logOpts: file['log-opts'],
    dns: file.dns,
    dnsOpts: file['dns-opts'],
    dnsSearch: file['dns-search'],
    defaultUlimits: mapValues(file['default-ulimits'], ({ Soft, Hard }) => ({ soft: Soft, hard: Hard })),
    authorizationPlugins: file['authorization-plugins'],
    pluginFolders: file['plugin-folders'],
    labels: file.labels,
    nodeGenericResources: file['node-generic-resources'],
    runtimes: mapValues(file.runtimes, ({ path, runtimeArgs = [] }) => ({ path, runtimeArgs })),
    defaultRuntime: file['default-runtime'],
    cgroupDriver: chosenCgroupDriver(file) ?? usualCgroupDriver(),
    cgroupParent: file['cgroup-parent'],
    usernsRemap: file['userns-remap'],
    realtime: { periodUs: file['cpu-rt-period'], runtimeUs: file['cpu-rt-runtime'] },
    liveRestore: file['live-restore'],
    buildCacheBytes: file['build-cache-size'],
    shutdownTimeoutSeconds: file['shutdown-timeout'],
  });
}

function mapValues<T, U>(map: Record<string, T>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(map).map(([key, value]) => [key, change(value)]));
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const inner of Object.values(value)) deepFreeze(inner);
  return Object.freeze(value);
}
