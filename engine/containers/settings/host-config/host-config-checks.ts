import { isIP } from 'node:net';

import { isSlice, type CgroupDriver } from '../../../host/cgroups/cgroup-driver.ts';
import { EngineError, refuseIf } from '../../../lib/errors.ts';
import { sharedWith } from '../../../lib/shared-namespace.ts';
import { wantedPorts } from '../../../networks/endpoints/ports.ts';
import { tmpfsOptions } from '../../../oci/mounts/tmpfs-options.ts';
import { deviceRule } from '../../../oci/resources.ts';
import { wantedCapabilities } from '../../../oci/security/capabilities.ts';
import { checkLimits } from '../limits/limits.ts';
import { checkedDestination } from '../mounts/mount-points.ts';
import { securityOptions } from '../security-option.ts';
import type { HostConfig } from './host-config-schema.ts';
import { writableLimit } from './writable-limit.ts';

type Around = Readonly<{ usesCgroups2: boolean; cgroupDriver: CgroupDriver | undefined }>;

/** Throws `invalid`, or `failed` for settings that this machine cannot fulfil, with the reason. */
export function checkHostConfig(hostConfig: HostConfig, { usesCgroups2, cgroupDriver }: Around): void {
  checkLimits(hostConfig);
  checkModes(hostConfig);
  checkNetwork(hostConfig);
  checkSecurity(hostConfig, usesCgroups2);
  refuseIf(
    cgroupDriver === 'systemd' && hostConfig.CgroupParent !== '' && !isSlice(hostConfig.CgroupParent),
    'cgroup-parent for systemd cgroup should be a valid slice named as "xxx.slice"',
  );
  wantedPorts(hostConfig.PortBindings, false, []);
  wantedCapabilities({ add: hostConfig.CapAdd, drop: hostConfig.CapDrop, privileged: hostConfig.Privileged });
}

/** Refuses settings that need the users of the host, in dockerd's words. Throws `invalid`. */
export function checkWithUserNamespace({ UsernsMode, Privileged, NetworkMode, PidMode }: HostConfig): void {
  if (UsernsMode === 'host') return;
  refuseIf(
    Privileged,
    'privileged mode is incompatible with user namespaces.  You must run the container in the host namespace when running privileged mode',
  );
  refuseIf(NetworkMode === 'host', "cannot share the host's network namespace when user namespaces are enabled");
  refuseIf(PidMode === 'host', 'cannot share the host PID namespace when user namespaces are enabled');
}

function checkModes({
  AutoRemove,
  RestartPolicy,
  IpcMode,
  ConsoleSize,
  Tmpfs,
  Annotations,
  Umask = 0,
}: HostConfig): void {
  checkRestartPolicy(RestartPolicy);
  refuseIf(
    AutoRemove && !['', 'no'].includes(RestartPolicy.Name),
    "can't create 'AutoRemove' container with restart policy",
  );
  refuseIf(!/^(private|shareable|host|none|container:.+)$/s.test(IpcMode), `invalid IPC mode: ${IpcMode}`);
  refuseIf(
    ConsoleSize.some((size) => size < 0 || size > 65_535),
    `invalid console size: ${ConsoleSize.join('x')}`,
  );
  refuseIf(
    Object.hasOwn(Annotations ?? {}, ''),
    'invalid Annotations: the empty string is not permitted as an annotation key',
  );
  refuseIf(Umask < 0 || Umask > 0o777, `invalid umask: ${Umask}`);
  for (const [path, options] of Object.entries(Tmpfs ?? {})) {
    checkedDestination(path);
    tmpfsOptions(options);
  }
}

/** Throws `invalid`. */
export function checkRestartPolicy({ Name, MaximumRetryCount }: HostConfig['RestartPolicy']): void {
  refuseIf(!['', 'no', 'always', 'unless-stopped', 'on-failure'].includes(Name), `invalid restart policy '${Name}'`);
  refuseIf(
    MaximumRetryCount !== 0 && Name !== 'on-failure',
    `maximum retry count cannot be used with restart policy '${Name}'`,
  );
  refuseIf(MaximumRetryCount < 0, 'maximum retry count cannot be negative');
}

function checkNetwork({ NetworkMode, PortBindings, PublishAllPorts, Links, ExtraHosts, Dns }: HostConfig): void {
  for (const host of ExtraHosts ?? []) checkExtraHost(host);
  refuseIf(
    NetworkMode === 'host' && (Links ?? []).length > 0,
    "conflicting options: host type networking can't be used with links. This would result in undefined behavior",
  );
  const other = sharedWith(NetworkMode);
  if (other === undefined) return;
  refuseIf(other === '', 'Invalid network mode: invalid container format container:<name|id>');
  refuseIf(
    Object.keys(PortBindings).length > 0 || PublishAllPorts,
    'conflicting options: port publishing and the container type network mode',
  );
  refuseIf(
    (Links ?? []).length > 0,
    "conflicting options: container type network can't be used with links. This would result in undefined behavior",
  );
  refuseIf((Dns ?? []).length > 0, 'conflicting options: dns and the network mode');
  refuseIf((ExtraHosts ?? []).length > 0, 'conflicting options: custom host-to-IP mapping and the network mode');
}

function checkExtraHost(entry: string): void {
  const match = /^[^:]+:(.+)$/.exec(entry);
  if (match === null) throw new EngineError('invalid', `bad format for add-host: "${entry}"`);
  const [, address = ''] = match;
  refuseIf(address !== 'host-gateway' && isIP(address) === 0, `invalid IP address in add-host: "${address}"`);
}

function checkSecurity({ SecurityOpt, StorageOpt, Isolation, ...more }: HostConfig, usesCgroups2: boolean): void {
  const { CgroupnsMode, Privileged, DeviceCgroupRules, DeviceRequests } = more;
  refuseIf(!['host', 'private'].includes(CgroupnsMode ?? 'host'), `invalid cgroup namespace mode: ${CgroupnsMode}`);
  refuseIf(
    CgroupnsMode === 'private' && Privileged && !usesCgroups2,
    'privileged mode is incompatible with private cgroup namespaces. You must run the container in the host cgroup namespace when running privileged mode',
  );
  for (const rule of DeviceCgroupRules ?? []) deviceRule(rule);
  for (const { Driver = '', Capabilities } of DeviceRequests ?? []) {
    if (Driver === 'cdi') continue;
    const wanted = (Capabilities ?? []).map((names) => `[${names.join(' ')}]`).join(' ');
    throw new EngineError('failed', `could not select device driver "${Driver}" with capabilities: [${wanted}]`);
  }
  securityOptions({ SecurityOpt });
  refuseIf(
    !['', 'default'].includes(Isolation.toLowerCase()),
    `Invalid isolation: "${Isolation}" - linux only supports 'default'`,
  );
  writableLimit(StorageOpt);
}
