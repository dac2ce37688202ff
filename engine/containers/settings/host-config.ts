import { existsSync } from 'node:fs';
import { isIP } from 'node:net';

import { EngineError, refuseIf } from '../../lib/errors.ts';
import { sharedWith } from '../../lib/shared-namespace.ts';
import { logConfigOf } from '../../logs/log-options.ts';
import { wantedPorts } from '../../networks/ports.ts';
import { wantedCapabilities } from '../../oci/capabilities.ts';
import { DEFAULT_MASKED, DEFAULT_READ_ONLY } from '../../oci/hidden-paths.ts';
import { deviceRule } from '../../oci/resources.ts';
import { tmpfsOptions } from '../../oci/tmpfs-options.ts';
import type { HostConfig, HostConfigBody } from './host-config-schema.ts';
import { checkLimits } from './limits.ts';
import { checkedDestination } from './mount-points.ts';

const DEFAULT_SHM_BYTES = 64 * 1024 * 1024;

type Defaults = { logDriver: string; logOpts: Readonly<Record<string, string>>; runtime: string };

/** A client's HostConfig with every field present, checked. Throws `invalid` with the reason. */
export function completeHostConfig(body: HostConfigBody, defaults: Defaults): HostConfig {
  const privileged = body.Privileged ?? false;
  const hostConfig: HostConfig = {
    Binds: null,
    ContainerIDFile: '',
    VolumeDriver: '',
    VolumesFrom: null,
    CapAdd: null,
    CapDrop: null,
    CgroupnsMode: '',
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
    NanoCpus: 0,
    CgroupParent: '',
    BlkioWeight: 0,
    BlkioWeightDevice: null,
    BlkioDeviceReadBps: null,
    BlkioDeviceWriteBps: null,
    BlkioDeviceReadIOps: null,
    BlkioDeviceWriteIOps: null,
    CpuPeriod: 0,
    CpuQuota: 0,
    CpuRealtimePeriod: 0,
    CpuRealtimeRuntime: 0,
    CpusetCpus: '',
    CpusetMems: '',
    Devices: null,
    DeviceCgroupRules: null,
    DeviceRequests: null,
    KernelMemory: 0,
    MemoryReservation: 0,
    MemorySwap: 0,
    OomKillDisable: false,
    Ulimits: null,
    CpuCount: 0,
    CpuPercent: 0,
    IOMaximumIOps: 0,
    IOMaximumBandwidth: 0,
    ...body,
    MaskedPaths: body.MaskedPaths ?? (privileged ? null : [...DEFAULT_MASKED]),
    ReadonlyPaths: body.ReadonlyPaths ?? (privileged ? null : [...DEFAULT_READ_ONLY]),
    // Old and new clients write "no limit" in several ways.
    MemorySwappiness: (body.MemorySwappiness ?? -1) === -1 ? null : body.MemorySwappiness!,
    PidsLimit: (body.PidsLimit ?? 0) <= 0 ? null : body.PidsLimit!,
    // From a later version of the API, which dropped it again.
    KernelMemoryTCP: 0,
    AutoRemove: body.AutoRemove ?? false,
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
  if (hostConfig.CgroupnsMode === '') hostConfig.CgroupnsMode = usesCgroups2() ? 'private' : 'host';
  // As much swap as memory, if only a memory limit is set.
  if (hostConfig.Memory > 0 && hostConfig.MemorySwap === 0) hostConfig.MemorySwap = hostConfig.Memory * 2;
  checkLimits(hostConfig);
  checkModes(hostConfig);
  checkSecurity(hostConfig);
  wantedPorts(hostConfig.PortBindings, false, []);
  wantedCapabilities({ add: hostConfig.CapAdd, drop: hostConfig.CapDrop, privileged: hostConfig.Privileged });
  return hostConfig;
}

/**
 * On version 2 a container sees only its own cgroups; on version 1 clients of this version of the API expect the
 * host's.
 */
function usesCgroups2(): boolean {
  return existsSync('/sys/fs/cgroup/cgroup.controllers');
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
  for (const [path, options] of Object.entries(Tmpfs ?? {})) {
    checkedDestination(path);
    tmpfsOptions(options);
  }
  for (const host of ExtraHosts ?? []) checkExtraHost(host);
  refuseIf(
    NetworkMode === 'host' && (Links ?? []).length > 0,
    "conflicting options: host type networking can't be used with links. This would result in undefined behavior",
  );
  const other = sharedWith(NetworkMode);
  if (other === undefined) return;
  refuseIf(other === '', 'Invalid network mode: invalid container format container:<name|id>');
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

function checkSecurity({ SecurityOpt, StorageOpt, Isolation, ...more }: HostConfig): void {
  const { CgroupnsMode, Privileged, DeviceCgroupRules, DeviceRequests } = more;
  refuseIf(!['host', 'private'].includes(CgroupnsMode ?? 'host'), `invalid cgroup namespace mode: ${CgroupnsMode}`);
  refuseIf(
    CgroupnsMode === 'private' && Privileged && !usesCgroups2(),
    'privileged mode is incompatible with private cgroup namespaces. You must run the container in the host cgroup namespace when running privileged mode',
  );
  for (const rule of DeviceCgroupRules ?? []) deviceRule(rule);
  for (const { Driver = '', Capabilities } of DeviceRequests ?? []) {
    const wanted = (Capabilities ?? []).map((names) => `[${names.join(' ')}]`).join(' ');
    throw new EngineError('failed', `could not select device driver "${Driver}" with capabilities: [${wanted}]`);
  }
  for (const option of SecurityOpt ?? []) {
    const known = /^(no-new-privileges([=:](true|false))?|(seccomp|apparmor|label)[=:].+)$/s.test(option);
    refuseIf(!known, `invalid --security-opt ${/[=:]/.test(option) ? 2 : 1}: "${option}"`);
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
