import type { CgroupDriver } from '../../../host/cgroups/cgroup-driver.ts';
import { detectCgroups } from '../../../host/cgroups/cgroups.ts';
import { logConfigOf } from '../../../logs/log-options.ts';
import { DEFAULT_MASKED, DEFAULT_READ_ONLY } from '../../../oci/security/hidden-paths.ts';
import { portBindingsOf } from '../port-bindings.ts';
import { checkHostConfig, checkWithUserNamespace } from './host-config-checks.ts';
import { DEFAULTS } from './host-config-defaults.ts';
import type { HostConfig, HostConfigBody } from './host-config-schema.ts';

const DEFAULT_SHM_BYTES = 64 * 1024 * 1024;

type Defaults = {
  logDriver: string;
  logOpts: Readonly<Record<string, string>>;
  runtime: string;
  cgroupDriver?: CgroupDriver;
  /** Whether containers have users of their own, unless they ask for the host's. */
  mapsUsers?: boolean;
};

/** A client's HostConfig with every field present, checked. Throws `invalid` with the reason. */
export function completeHostConfig(body: HostConfigBody, defaults: Defaults): HostConfig {
  const privileged = body.Privileged ?? false;
  const hostConfig: HostConfig = {
    ...DEFAULTS,
    Runtime: defaults.runtime,
    ...body,
    MaskedPaths: body.MaskedPaths ?? (privileged ? null : [...DEFAULT_MASKED]),
    ReadonlyPaths: body.ReadonlyPaths ?? (privileged ? null : [...DEFAULT_READ_ONLY]),
    // Old and new clients write "no limit" in several ways.
    MemorySwappiness: (body.MemorySwappiness ?? -1) === -1 ? null : body.MemorySwappiness!,
    PidsLimit: (body.PidsLimit ?? 0) <= 0 ? null : body.PidsLimit!,
    KernelMemoryTCP: body.KernelMemoryTCP ?? 0,
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
  const [height = 0, width = 0] = hostConfig.ConsoleSize;
  hostConfig.ConsoleSize = [height, width];
  if (Object.keys(hostConfig.Annotations ?? {}).length === 0) delete hostConfig.Annotations;
  if (hostConfig.ShmSize === 0) hostConfig.ShmSize = DEFAULT_SHM_BYTES;
  if (hostConfig.IpcMode === '') hostConfig.IpcMode = 'private';
  if (hostConfig.CgroupnsMode === '') hostConfig.CgroupnsMode = usesCgroups2() ? 'private' : 'host';
  // As much swap as memory, if only memory is limited.
  if (hostConfig.Memory > 0 && hostConfig.MemorySwap === 0) hostConfig.MemorySwap = hostConfig.Memory * 2;
  checkHostConfig(hostConfig, { usesCgroups2: usesCgroups2(), cgroupDriver: defaults.cgroupDriver });
  if (defaults.mapsUsers === true) checkWithUserNamespace(hostConfig);
  return hostConfig;
}

/**
 * On version 2 a container sees only its own cgroups; on version 1 clients of this version of the API expect the
 * host's.
 */
function usesCgroups2(): boolean {
  return detectCgroups().version === 2;
}
