import type { CreateBody } from '@gantry/client/containers.ts';

import type { Flag, Kind, Values } from '../command-line/command.ts';
import { mapOf, splitOnce } from '../command-line/values.ts';
import * as network from './network-values.ts';
import type { CreateRequest } from './request.ts';
import * as resource from './resource-values.ts';
import * as storage from './storage-values.ts';
import { linesOfFiles, variables } from './variables.ts';

type HostConfig = CreateRequest['host'];
type KeysTaking<T, V> = { [K in keyof T]-?: V extends NonNullable<T[K]> ? K : never }[keyof T];

/** A flag with the target of its value: a field of the body, a field of HostConfig, or the function `set`. */
type Row = {
  [K in Kind]: Flag<K> & {
    config?: KeysTaking<CreateBody, Values[K]>;
    host?: KeysTaking<HostConfig, Values[K]>;
    set?: (request: CreateRequest, value: Values[K]) => void;
  };
}[Kind];

const WINDOWS = 'not on Linux';
const UNKNOWN = 'API 1.24 does not have it';

/** Every flag of `create`; `run` has some more. Parsing, help, completion and the request come from this table. */
export const CREATE_FLAGS = {
  'add-host': { kind: 'list', value: 'HOST:IP', help: 'Add a line to /etc/hosts', host: 'ExtraHosts' },
  annotation: { kind: 'list', help: '', refused: UNKNOWN },
  attach: {
    kind: 'list',
    short: 'a',
    value: 'STREAM',
    help: 'Attach to stdin, stdout or stderr',
    offers: ['stdin', 'stdout', 'stderr'],
  },
  'blkio-weight': { kind: 'integer', help: 'Block IO weight, 10 to 1000; 0 is the default', host: 'BlkioWeight' },
  'blkio-weight-device': {
    kind: 'list',
    value: 'DEVICE:WEIGHT',
    help: 'Block IO weight for a device',
    set: ({ host }, list) => (host.BlkioWeightDevice = list.map(resource.weightOfDevice)),
  },
  'cap-add': { kind: 'list', value: 'CAPABILITY', help: 'Add a capability', host: 'CapAdd' },
  'cap-drop': { kind: 'list', value: 'CAPABILITY', help: 'Drop a capability', host: 'CapDrop' },
  'cgroup-parent': {
    kind: 'text',
    value: 'CGROUP',
    help: 'The parent of the container’s cgroup',
    host: 'CgroupParent',
  },
  cgroupns: {
    kind: 'text',
    value: 'MODE',
    help: 'Cgroup namespace: host or private',
    host: 'CgroupnsMode',
    offers: ['host', 'private'],
  },
  cidfile: { kind: 'text', value: 'FILE', help: 'Write the container’s id to a file', offers: 'file' },
  'cpu-count': { kind: 'integer', help: `Number of CPUs, ${WINDOWS}`, host: 'CpuCount' },
  'cpu-percent': { kind: 'integer', help: `Share of the CPUs, ${WINDOWS}`, host: 'CpuPercent' },
  'cpu-period': {
    kind: 'integer',
    value: 'MICROSECONDS',
    help: 'Period in which the quota is given',
    host: 'CpuPeriod',
  },
  'cpu-quota': { kind: 'integer', value: 'MICROSECONDS', help: 'CPU time in each period', host: 'CpuQuota' },
  'cpu-rt-period': {
    kind: 'integer',
    value: 'MICROSECONDS',
    help: 'Period of real-time tasks',
    host: 'CpuRealtimePeriod',
  },
  'cpu-rt-runtime': {
    kind: 'integer',
    value: 'MICROSECONDS',
    help: 'CPU time of real-time tasks in each period',
    host: 'CpuRealtimeRuntime',
  },
  'cpu-shares': {
    kind: 'integer',
    short: 'c',
    help: 'CPU weight beside other containers; 1024 is usual',
    host: 'CpuShares',
  },
  cpus: { kind: 'decimal', help: 'Number of CPUs, such as 1.5', set: resource.setCpus },
  'cpuset-cpus': { kind: 'text', value: 'CPUS', help: 'The CPUs to run on, such as 0-3 or 0,1', host: 'CpusetCpus' },
  'cpuset-mems': {
    kind: 'text',
    value: 'NODES',
    help: 'The memory nodes to use, such as 0-3 or 0,1',
    host: 'CpusetMems',
  },
  device: {
    kind: 'list',
    value: 'HOST[:INSIDE[:rwm]]',
    help: 'Add a device of the host',
    set: ({ host }, list) => (host.Devices = list.map(resource.deviceOf)),
    offers: 'file',
  },
  'device-cgroup-rule': {
    kind: 'list',
    value: 'RULE',
    help: 'Allow devices, such as: c 1:3 rwm',
    host: 'DeviceCgroupRules',
  },
  'device-read-bps': {
    kind: 'list',
    value: 'DEVICE:SIZE',
    help: 'Limit of bytes read from a device per second',
    set: ({ host }, list) => (host.BlkioDeviceReadBps = list.map(resource.bytesOfDevice)),
  },
  'device-read-iops': {
    kind: 'list',
    value: 'DEVICE:NUMBER',
    help: 'Limit of reads from a device per second',
    set: ({ host }, list) => (host.BlkioDeviceReadIOps = list.map(resource.rateOfDevice)),
  },
  'device-write-bps': {
    kind: 'list',
    value: 'DEVICE:SIZE',
    help: 'Limit of bytes written to a device per second',
    set: ({ host }, list) => (host.BlkioDeviceWriteBps = list.map(resource.bytesOfDevice)),
  },
  'device-write-iops': {
    kind: 'list',
    value: 'DEVICE:NUMBER',
    help: 'Limit of writes to a device per second',
    set: ({ host }, list) => (host.BlkioDeviceWriteIOps = list.map(resource.rateOfDevice)),
  },
  'disable-content-trust': { kind: 'boolean', initial: 'true', help: 'Without effect: images are not signed' },
  dns: { kind: 'list', value: 'ADDRESS', help: 'A name server', host: 'Dns' },
  'dns-option': { kind: 'list', value: 'OPTION', help: 'An option of resolv.conf', host: 'DnsOptions' },
  'dns-search': { kind: 'list', value: 'DOMAIN', help: 'A domain to look names up in', host: 'DnsSearch' },
  domainname: { kind: 'text', value: 'NAME', help: 'NIS domain name', config: 'Domainname' },
  entrypoint: {
    kind: 'text',
    value: 'PROGRAM',
    help: 'Instead of the image’s entrypoint; empty: none',
    set: ({ config }, program) => (config.Entrypoint = program === '' ? [] : [program]),
  },
  'env-file': {
    kind: 'list',
    value: 'FILE',
    help: 'Set environment variables from a file of NAME=VALUE lines',
    set: setVariables,
    offers: 'file',
  },
  env: {
    kind: 'list',
    short: 'e',
    value: 'NAME[=VALUE]',
    help: 'Set an environment variable; without a value: yours',
    set: ({ config }, list) => void (config.Env ??= []).push(...list.flatMap(variables)),
  },
  expose: {
    kind: 'list',
    value: 'PORT[-PORT][/PROTOCOL]',
    help: 'Expose a port or a range of ports',
    set: network.expose,
  },
  gpus: { kind: 'text', value: 'REQUEST', help: 'GPUs: all, a number, or device=ID', set: resource.setGpus },
  'group-add': { kind: 'list', value: 'GROUP', help: 'Join a further group', host: 'GroupAdd' },
  'health-cmd': {
    kind: 'text',
    value: 'COMMAND',
    help: 'Command to check the health',
    set: (request, text) => resource.setHealth(request, { Test: ['CMD-SHELL', text] }),
  },
  'health-interval': {
    kind: 'duration',
    help: 'Time between two checks',
    set: (request, time) => resource.setHealth(request, { Interval: time }),
  },
  'health-retries': {
    kind: 'integer',
    help: 'Failed checks that make it unhealthy',
    set: (request, count) => resource.setHealth(request, { Retries: count }),
  },
  'health-start-interval': { kind: 'duration', help: '', refused: UNKNOWN },
  'health-start-period': {
    kind: 'duration',
    help: 'Time in which failed checks do not count',
    set: (request, time) => resource.setHealth(request, { StartPeriod: time }),
  },
  'health-timeout': {
    kind: 'duration',
    help: 'Time that one check may take',
    set: (request, time) => resource.setHealth(request, { Timeout: time }),
  },
  hostname: { kind: 'text', short: 'h', value: 'NAME', help: 'Host name of the container', config: 'Hostname' },
  init: { kind: 'boolean', help: 'Run an init as the first process', host: 'Init' },
  interactive: { kind: 'boolean', short: 'i', help: 'Keep stdin open', config: 'OpenStdin' },
  'io-maxbandwidth': { kind: 'bytes', help: `Limit of the system drive, ${WINDOWS}`, host: 'IOMaximumBandwidth' },
  'io-maxiops': { kind: 'integer', help: `Limit of the system drive, ${WINDOWS}`, host: 'IOMaximumIOps' },
  ip: {
    kind: 'text',
    value: 'ADDRESS',
    help: 'IPv4 address in its network',
    set: (request, ip) => network.setAddress(request, { IPv4Address: ip }),
  },
  ip6: {
    kind: 'text',
    value: 'ADDRESS',
    help: 'IPv6 address in its network',
    set: (request, ip) => network.setAddress(request, { IPv6Address: ip }),
  },
  ipc: {
    kind: 'text',
    value: 'MODE',
    help: 'IPC namespace: host, or container:NAME',
    host: 'IpcMode',
    offers: ['host', 'container:'],
  },
  isolation: { kind: 'text', help: `Way of isolation, ${WINDOWS}`, host: 'Isolation' },
  'kernel-memory': { kind: 'bytes', help: 'Limit of the kernel’s memory', host: 'KernelMemory' },
  'label-file': {
    kind: 'list',
    value: 'FILE',
    help: 'Set labels from a file of NAME=VALUE lines',
    set: setLabels,
    offers: 'file',
  },
  label: {
    kind: 'list',
    short: 'l',
    value: 'NAME=VALUE',
    help: 'Set a label',
    set: ({ config }, list) => (config.Labels = { ...config.Labels, ...mapOf(list) }),
  },
  link: {
    kind: 'list',
    value: 'CONTAINER[:ALIAS]',
    help: 'Link to another container, under an alias',
    set: network.setLinks,
    offers: 'container',
  },
  'link-local-ip': {
    kind: 'list',
    value: 'ADDRESS',
    help: 'A link-local address',
    set: (request, list) => network.setAddress(request, { LinkLocalIPs: list }),
  },
  'log-driver': {
    kind: 'text',
    value: 'DRIVER',
    help: 'The log driver, such as json-file, local, syslog or none',
    set: ({ host }, name) => (host.LogConfig = { ...host.LogConfig, Type: name }),
    offers: ['json-file', 'local', 'syslog', 'journald', 'gelf', 'fluentd', 'splunk', 'awslogs', 'none'],
  },
  'log-opt': {
    kind: 'list',
    value: 'NAME=VALUE',
    help: 'An option of the log driver, such as max-size=1m',
    set: ({ host }, list) => (host.LogConfig = { ...host.LogConfig, Config: mapOf(list) }),
  },
  'mac-address': {
    kind: 'text',
    value: 'ADDRESS',
    help: 'MAC address, such as 92:d0:c6:0a:29:33',
    config: 'MacAddress',
  },
  memory: { kind: 'bytes', short: 'm', help: 'Limit of memory, such as 64m', host: 'Memory' },
  'memory-reservation': { kind: 'bytes', help: 'Soft limit of memory', host: 'MemoryReservation' },
  'memory-swap': { kind: 'bytes', help: 'Limit of memory and swap together; -1: unlimited swap', host: 'MemorySwap' },
  'memory-swappiness': { kind: 'integer', help: 'Tendency to swap, 0 to 100', host: 'MemorySwappiness' },
  mount: {
    kind: 'list',
    value: 'type=TYPE,src=…,dst=…',
    help: 'Mount a volume, a folder of the host (bind) or a tmpfs',
    set: storage.setMounts,
  },
  name: { kind: 'text', help: 'Name of the container', value: 'NAME' },
  network: {
    kind: 'text',
    value: 'NETWORK',
    help: 'bridge, none, host, container:NAME or a network’s name',
    host: 'NetworkMode',
    offers: 'network',
  },
  net: { kind: 'text', value: 'NETWORK', help: 'The same as --network', host: 'NetworkMode', offers: 'network' },
  'network-alias': {
    kind: 'list',
    value: 'NAME',
    help: 'A further name in its network',
    set: ({ endpoint }, list) => void (endpoint.Aliases ??= []).push(...list),
  },
  'net-alias': {
    kind: 'list',
    value: 'NAME',
    help: 'The same as --network-alias',
    set: ({ endpoint }, list) => void (endpoint.Aliases ??= []).push(...list),
  },
  'no-healthcheck': { kind: 'boolean', help: 'Without the image’s health check', set: resource.setNoHealth },
  'oom-kill-disable': {
    kind: 'boolean',
    help: 'Do not kill processes that exceed the memory limit',
    host: 'OomKillDisable',
  },
  'oom-score-adj': {
    kind: 'integer',
    help: 'Preference of the OOM killer, -1000 to 1000',
    host: 'OomScoreAdj',
  },
  pid: {
    kind: 'text',
    value: 'MODE',
    help: 'PID namespace: host, or container:NAME',
    set: ({ host }, mode) => void (host.PidMode = resource.namespaceMode('pid', mode)),
    offers: ['host', 'container:'],
  },
  'pids-limit': { kind: 'integer', help: 'Limit of processes; -1: unlimited', host: 'PidsLimit' },
  platform: { kind: 'text', value: 'OS/ARCH', help: 'The platform of the image, such as linux/arm64' },
  privileged: { kind: 'boolean', help: 'All capabilities and devices', host: 'Privileged' },
  publish: {
    kind: 'list',
    short: 'p',
    value: '[[IP:]PORT:]INSIDE[/PROTOCOL]',
    help: 'Publish a port or a range of ports',
    set: network.publish,
  },
  'publish-all': {
    kind: 'boolean',
    short: 'P',
    help: 'Publish all exposed ports on free ones',
    host: 'PublishAllPorts',
  },
  pull: {
    kind: 'text',
    value: 'WHEN',
    initial: 'missing',
    help: 'Pull the image: always, missing or never',
    offers: ['always', 'missing', 'never'],
  },
  quiet: { kind: 'boolean', short: 'q', help: 'No progress of a pull' },
  'read-only': { kind: 'boolean', help: 'Mount the root file system read-only', host: 'ReadonlyRootfs' },
  restart: {
    kind: 'text',
    value: 'POLICY',
    help: 'no, always, unless-stopped or on-failure[:COUNT]',
    set: resource.setRestart,
    offers: ['no', 'always', 'unless-stopped', 'on-failure'],
  },
  rm: { kind: 'boolean', help: 'Remove it and its anonymous volumes at its end' },
  runtime: {
    kind: 'text',
    value: 'NAME',
    help: 'The OCI runtime, by its name in the engine',
    host: 'Runtime',
    offers: ['runc', 'crun'],
  },
  'security-opt': {
    kind: 'list',
    value: 'OPTION',
    help: 'seccomp=FILE, seccomp=unconfined, no-new-privileges, …',
    set: ({ host }, list) => (host.SecurityOpt = list.map(resource.securityOption)),
  },
  'shm-size': { kind: 'bytes', help: 'Size of /dev/shm', host: 'ShmSize' },
  'stop-signal': { kind: 'text', value: 'SIGNAL', help: 'Signal that stops it', config: 'StopSignal' },
  'stop-timeout': { kind: 'integer', value: 'SECONDS', help: 'Time it has to stop', config: 'StopTimeout' },
  'storage-opt': {
    kind: 'list',
    value: 'NAME=VALUE',
    help: 'An option of the storage driver',
    set: ({ host }, list) => (host.StorageOpt = mapOf(list)),
  },
  sysctl: {
    kind: 'list',
    value: 'NAME=VALUE',
    help: 'A kernel parameter in its namespaces',
    set: ({ host }, list) => (host.Sysctls = mapOf(list)),
  },
  tmpfs: {
    kind: 'list',
    value: 'PATH[:OPTIONS]',
    help: 'Mount a tmpfs',
    set: ({ host }, list) =>
      (host.Tmpfs = { ...host.Tmpfs, ...Object.fromEntries(list.map((each) => splitOnce(each, ':'))) }),
  },
  tty: { kind: 'boolean', short: 't', help: 'Allocate a terminal', config: 'Tty' },
  ulimit: {
    kind: 'list',
    value: 'NAME=SOFT[:HARD]',
    help: 'A limit of each process, such as nofile=1024',
    set: ({ host }, list) => (host.Ulimits = list.map(resource.ulimitOf)),
  },
  'use-api-socket': { kind: 'boolean', help: '', refused: 'mount the socket with -v' },
  user: { kind: 'text', short: 'u', value: 'USER[:GROUP]', help: 'Names or numbers', config: 'User' },
  userns: {
    kind: 'text',
    value: 'MODE',
    help: 'User namespace: host',
    set: ({ host }, mode) => void (host.UsernsMode = resource.namespaceMode('userns', mode)),
    offers: ['host'],
  },
  uts: {
    kind: 'text',
    value: 'MODE',
    help: 'UTS namespace: host',
    set: ({ host }, mode) => void (host.UTSMode = resource.namespaceMode('uts', mode)),
    offers: ['host'],
  },
  volume: {
    kind: 'list',
    short: 'v',
    value: '[SOURCE:]PATH[:OPTIONS]',
    help: 'Mount a volume or a folder of the host',
    set: storage.setVolumes,
    offers: 'volume',
  },
  'volume-driver': { kind: 'text', value: 'DRIVER', help: 'The driver of its volumes', host: 'VolumeDriver' },
  'volumes-from': {
    kind: 'list',
    value: 'CONTAINER[:ro]',
    help: 'Mount the volumes of another container',
    host: 'VolumesFrom',
    offers: 'container',
  },
  workdir: { kind: 'text', short: 'w', value: 'PATH', help: 'Working directory inside', config: 'WorkingDir' },
} as const satisfies Readonly<Record<string, Row>>;

/** Applies the given flags to the request, in the order of the table. */
export function applyFlags(request: CreateRequest, given: Readonly<Record<string, unknown>>): void {
  for (const [name, row] of Object.entries<Row>(CREATE_FLAGS)) {
    const value = given[name];
    if (value === undefined || value === false || (Array.isArray(value) && value.length === 0)) continue;
    if (row.config !== undefined) Object.assign(request.config, { [row.config]: value });
    if (row.host !== undefined) Object.assign(request.host, { [row.host]: value });
    (row.set as ((request: CreateRequest, value: unknown) => void) | undefined)?.(request, value);
  }
}

function setVariables({ config }: CreateRequest, files: string[]): void {
  (config.Env ??= []).push(...linesOfFiles(files).flatMap(variables));
}

function setLabels({ config }: CreateRequest, files: string[]): void {
  config.Labels = { ...config.Labels, ...mapOf(linesOfFiles(files)) };
}
