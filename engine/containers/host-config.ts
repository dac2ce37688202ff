import { readdirSync } from 'node:fs';
import { isIP } from 'node:net';
import { cpus } from 'node:os';

import { EngineError, hasCode } from '../lib/errors.ts';
import { wantedCapabilities } from './capabilities.ts';
import type { HostConfig, HostConfigBody } from './host-config-schema.ts';
import { logConfigOf } from './log-options.ts';

const DEFAULT_SHM_BYTES = 64 * 1024 * 1024;
const MINIMUM_MEMORY_BYTES = 6 * 1024 * 1024;

type Defaults = { logDriver: string; logOpts: Readonly<Record<string, string>>; runtime: string };

/** A client's HostConfig with every field present, checked. Throws `invalid` with what is wrong. */
export function completeHostConfig(body: HostConfigBody, defaults: Defaults): HostConfig {
  const hostConfig: HostConfig = {
    Binds: null,
    ContainerIDFile: '',
    VolumeDriver: '',
    VolumesFrom: null,
    CapAdd: null,
    CapDrop: null,
    Dns: null,
    DnsOptions: null,
    DnsSearch: null,
    ExtraHosts: null,
    GroupAdd: null,
    IpcMode: 'shareable',
    Cgroup: '',
    Links: null,
    OomScoreAdj: 0,
    PidMode: '',
    Privileged: false,
    PublishAllPorts: false,
    ReadonlyRootfs: false,
    SecurityOpt: null,
    UTSMode: '',
    UsernsMode: '',
    Runtime: defaults.runtime,
    ConsoleSize: [0, 0],
    Isolation: '',
    CpuShares: 0,
    Memory: 0,
    CgroupParent: '',
    BlkioWeight: 0,
    BlkioWeightDevice: null,
    BlkioDeviceReadBps: null,
    BlkioDeviceWriteBps: null,
    BlkioDeviceReadIOps: null,
    BlkioDeviceWriteIOps: null,
    CpuPeriod: 0,
    CpuQuota: 0,
    CpusetCpus: '',
    CpusetMems: '',
    Devices: null,
    KernelMemory: 0,
    MemoryReservation: 0,
    MemorySwap: 0,
    MemorySwappiness: null,
    OomKillDisable: false,
    PidsLimit: null,
    Ulimits: null,
    CpuCount: 0,
    CpuPercent: 0,
    IOMaximumIOps: 0,
    IOMaximumBandwidth: 0,
    ...body,
    // Newer clients ask the daemon to remove the container; at this version they do it themselves.
    AutoRemove: false,
    ShmSize: body.ShmSize ?? DEFAULT_SHM_BYTES,
    NetworkMode: body.NetworkMode || 'default',
    LogConfig: logConfigOf(body, defaults),
    PortBindings: portBindingsOf(body),
    RestartPolicy: {
      Name: body.RestartPolicy?.Name ?? '',
      MaximumRetryCount: body.RestartPolicy?.MaximumRetryCount ?? 0,
    },
  };
  if (hostConfig.ShmSize === 0) hostConfig.ShmSize = DEFAULT_SHM_BYTES;
  if (hostConfig.IpcMode === '') hostConfig.IpcMode = 'shareable';
  // As much swap as memory, where a limit is set and nothing is said of swap.
  if (hostConfig.Memory > 0 && hostConfig.MemorySwap === 0) hostConfig.MemorySwap = hostConfig.Memory * 2;
  checkLimits(hostConfig);
  checkModes(hostConfig);
  checkSecurity(hostConfig);
  checkSet('cpuset cpus', 'CPUs', hostConfig.CpusetCpus, cpus().length);
  checkSet('cpuset mems', 'memory nodes', hostConfig.CpusetMems, memoryNodes());
  wantedCapabilities({ add: hostConfig.CapAdd, drop: hostConfig.CapDrop, privileged: hostConfig.Privileged });
  return hostConfig;
}

function portBindingsOf({ PortBindings = {} }: HostConfigBody): HostConfig['PortBindings'] {
  const complete: HostConfig['PortBindings'] = {};
  for (const [port, bindings] of Object.entries(PortBindings)) {
    complete[portKey(port)] = (bindings ?? []).map(({ HostIp = '', HostPort = '' }) => {
      if (!/^(\d{1,5}(-\d{1,5})?)?$/.test(HostPort) || HostPort.split('-').some((port) => Number(port) > 65_535))
        throw new EngineError('invalid', `invalid port specification: "${HostPort}"`);
      return { HostIp, HostPort };
    });
  }
  return complete;
}

/** `80` and `80/tcp` mean the same. Throws `invalid`. */
export function portKey(port: string): string {
  const match = /^(\d{1,5})(?:\/(tcp|udp|sctp))?$/i.exec(port);
  if (match === null || Number(match[1]) > 65_535 || Number(match[1]) === 0) {
    throw new EngineError('invalid', `invalid port specification: "${port}"`);
  }
  return `${Number(match[1])}/${(match[2] ?? 'tcp').toLowerCase()}`;
}

function checkLimits(limits: HostConfig): void {
  const { Memory, MemorySwap, MemoryReservation, MemorySwappiness, CpuPeriod, CpuQuota, BlkioWeight, ShmSize } = limits;
  refuseIf(Memory !== 0 && Memory < MINIMUM_MEMORY_BYTES, 'Minimum memory limit allowed is 6MB');
  refuseIf(
    Memory === 0 && MemorySwap > 0,
    'You should always set the Memory limit when using Memoryswap limit, see usage',
  );
  refuseIf(
    Memory > 0 && MemorySwap > 0 && MemorySwap < Memory,
    'Minimum memoryswap limit should be larger than memory limit, see usage',
  );
  refuseIf(
    Memory > 0 && MemoryReservation > Memory,
    'Minimum memory limit can not be less than memory reservation limit, see usage',
  );
  refuseIf(
    MemoryReservation !== 0 && MemoryReservation < MINIMUM_MEMORY_BYTES,
    'Minimum memory reservation allowed is 6MB',
  );
  refuseIf(
    limits.KernelMemory !== 0 && limits.KernelMemory < MINIMUM_MEMORY_BYTES,
    'Minimum kernel memory limit allowed is 6MB',
  );
  refuseIf(
    MemorySwappiness !== null && (MemorySwappiness < -1 || MemorySwappiness > 100),
    `Invalid value: ${MemorySwappiness}, valid memory swappiness range is 0-100`,
  );
  refuseIf(
    CpuPeriod !== 0 && (CpuPeriod < 1000 || CpuPeriod > 1_000_000),
    'CPU cfs period can not be less than 1ms (i.e. 1000) or larger than 1s (i.e. 1000000)',
  );
  refuseIf(CpuQuota > 0 && CpuQuota < 1000, 'CPU cfs quota can not be less than 1ms (i.e. 1000)');
  refuseIf(BlkioWeight !== 0 && (BlkioWeight < 10 || BlkioWeight > 1000), 'Range of blkio weight is from 10 to 1000');
  for (const { Path, Weight } of limits.BlkioWeightDevice ?? []) {
    refuseIf(Weight < 10 || Weight > 1000, `Range of blkio weight is from 10 to 1000: ${Path}`);
  }
  refuseIf(ShmSize < 0, 'SHM size can not be less than 0');
  refuseIf(
    Math.abs(limits.OomScoreAdj) > 1000,
    `Invalid value ${limits.OomScoreAdj}, range for oom score adj is [-1000, 1000]`,
  );
  for (const { Name, Soft = 0, Hard = 0 } of limits.Ulimits ?? []) {
    refuseIf(
      Hard !== -1 && (Soft === -1 || Soft > Hard),
      `ulimit soft limit must be less than or equal to hard limit: ${Soft} > ${Hard} (${Name})`,
    );
  }
}

function checkModes({
  NetworkMode,
  PortBindings,
  Links,
  ExtraHosts,
  Dns,
  RestartPolicy,
  UsernsMode,
  IpcMode,
  ConsoleSize,
  Tmpfs,
}: HostConfig): void {
  const { Name, MaximumRetryCount } = RestartPolicy;
  refuseIf(!['', 'no', 'always', 'unless-stopped', 'on-failure'].includes(Name), `invalid restart policy '${Name}'`);
  refuseIf(
    MaximumRetryCount !== 0 && Name !== 'on-failure',
    `maximum retry count cannot be used with restart policy '${Name}'`,
  );
  refuseIf(MaximumRetryCount < 0, 'maximum retry count cannot be negative');
  refuseIf(!/^(private|shareable|host|none|container:.+)$/s.test(IpcMode), `invalid IPC mode: ${IpcMode}`);
  refuseIf(!['', 'host'].includes(UsernsMode), `invalid user namespace mode: ${UsernsMode}`);
  refuseIf(
    ConsoleSize.some((size) => size < 0 || size > 65_535),
    `invalid console size: ${ConsoleSize.join('x')}`,
  );
  for (const path of Object.keys(Tmpfs ?? {})) {
    refuseIf(
      !path.startsWith('/') || path === '/',
      `invalid tmpfs mount path: '${path}' mount path must be absolute and not '/'`,
    );
  }
  for (const host of ExtraHosts ?? []) checkExtraHost(host);
  refuseIf(
    NetworkMode === 'host' && (Links ?? []).length > 0,
    "conflicting options: host type networking can't be used with links. This would result in undefined behavior",
  );
  if (!NetworkMode.startsWith('container:')) return;
  refuseIf(NetworkMode === 'container:', 'Invalid network mode: invalid container format container:<name|id>');
  refuseIf(
    Object.keys(PortBindings).length > 0,
    'conflicting options: port publishing and the container type network mode',
  );
  refuseIf((Links ?? []).length > 0, 'conflicting options: container type network can’t be used with links');
  refuseIf((Dns ?? []).length > 0, 'conflicting options: dns and the network mode');
  refuseIf((ExtraHosts ?? []).length > 0, 'conflicting options: custom host-to-IP mapping and the network mode');
}

function checkExtraHost(entry: string): void {
  const match = /^[^:]+:(.+)$/.exec(entry);
  if (match === null) throw new EngineError('invalid', `bad format for add-host: "${entry}"`);
  const [, address = ''] = match;
  refuseIf(address !== 'host-gateway' && isIP(address) === 0, `invalid IP address in add-host: "${address}"`);
}

function checkSecurity({ SecurityOpt, StorageOpt, Isolation }: HostConfig): void {
  for (const option of SecurityOpt ?? []) {
    const known = /^(no-new-privileges([=:](true|false))?|(seccomp|apparmor|label)[=:].+)$/s.test(option);
    refuseIf(!known, `invalid --security-opt: "${option}"`);
  }
  refuseIf(!['', 'default'].includes(Isolation), `Invalid isolation: "${Isolation}" - linux only supports 'default'`);
  for (const key of Object.keys(StorageOpt ?? {})) {
    const reason =
      key === 'size'
        ? "--storage-opt is supported only for overlay over xfs with 'pquota' mount option"
        : `Unknown option ${key}`;
    throw new EngineError('failed', reason);
  }
}

/** Lists such as `0-3,5`, of what this machine has. */
function checkSet(what: string, requested: string, list: string, available: number): void {
  if (list === '') return;
  const parts = list.split(',').map((part) => /^(\d+)(?:-(\d+))?$/.exec(part.trim()));
  for (const part of parts) {
    if (part === null) throw new EngineError('invalid', `Invalid value ${list} for ${what}: invalid format: ${list}`);
    const last = Number(part[2] ?? part[1]);
    refuseIf(Number(part[1]) > last, `Invalid value ${list} for ${what}: invalid format: ${list}`);
    const range = available === 1 ? '0' : `0-${available - 1}`;
    refuseIf(last >= available, `Requested ${requested} are not available - requested ${list}, available: ${range}`);
  }
}

/** NUMA nodes: nearly always one. */
function memoryNodes(): number {
  try {
    return Math.max(1, readdirSync('/sys/devices/system/node').filter((name) => /^node\d+$/.test(name)).length);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 1;
    throw error;
  }
}

function refuseIf(wrong: boolean, message: string): void {
  if (wrong) throw new EngineError('invalid', message);
}
