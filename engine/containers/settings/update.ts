import type { LimitSupport } from '../../host/cgroups/limit-support.ts';
import { EngineError, refuseIf } from '../../lib/errors.ts';
import { blockDevice } from '../../oci/resources.ts';
import { checkRestartPolicy } from './host-config/host-config-checks.ts';
import { DEFAULTS } from './host-config/host-config-defaults.ts';
import type { HostConfig } from './host-config/host-config-schema.ts';
import { checkLimits, checkRealtime } from './limits/limits.ts';
import { withoutUnsupported } from './limits/supported-limits.ts';

const NUMBERS = [
  'BlkioWeight',
  'CpuShares',
  'CpuPeriod',
  'CpuQuota',
  'CpuRealtimePeriod',
  'CpuRealtimeRuntime',
  'NanoCpus',
  'Memory',
  'MemorySwap',
  'MemoryReservation',
  'KernelMemory',
] as const satisfies (keyof HostConfig)[];
const DEVICES = [
  'BlkioWeightDevice',
  'BlkioDeviceReadBps',
  'BlkioDeviceWriteBps',
  'BlkioDeviceReadIOps',
  'BlkioDeviceWriteIOps',
] as const satisfies (keyof HostConfig)[];
const TEXTS = ['CpusetCpus', 'CpusetMems'] as const satisfies (keyof HostConfig)[];

/** The requested changes; 0 and empty mean no change, and a list of devices replaces the one before. A `PidsLimit` of 0 or less is none. */
export type WantedUpdate = Partial<
  Pick<HostConfig, (typeof NUMBERS)[number] | (typeof TEXTS)[number] | (typeof DEVICES)[number] | 'PidsLimit'> & {
    RestartPolicy: Readonly<{ Name?: string; MaximumRetryCount?: number }>;
  }
>;

/** Refuses impossible limits, and drops those that this kernel lacks. Throws `invalid`. */
export function checkedUpdate(
  wanted: WantedUpdate,
  support: LimitSupport,
): { update: WantedUpdate; warnings: string[] } {
  const asked = { ...DEFAULTS, ...wanted, ...NOT_UPDATED } as unknown as HostConfig;
  checkLimits(asked, { isUpdate: true });
  const { Name = '', MaximumRetryCount = 0 } = wanted.RestartPolicy ?? {};
  checkRestartPolicy({ Name, MaximumRetryCount });
  const { hostConfig, warnings } = withoutUnsupported(asked, support);
  const listed = DEVICES.flatMap((key): readonly { Path: string }[] => hostConfig[key] ?? []);
  for (const { Path } of listed) {
    refuseIf(blockDevice(Path) === undefined, `no such device: ${Path}`);
  }
  const devices = Object.fromEntries(DEVICES.map((key) => [key, hostConfig[key]]));
  const update = { ...wanted, ...devices, BlkioWeight: hostConfig.BlkioWeight, KernelMemory: hostConfig.KernelMemory };
  return { update: { ...update, MemorySwap: hostConfig.MemorySwap }, warnings };
}

/** Fields that the checks look at and an update does not have. */
const NOT_UPDATED = {
  ShmSize: 1,
  MemorySwappiness: null,
  PortBindings: {},
  NetworkMode: 'default',
} as const;

/** The HostConfig after the update. Throws `conflict` for a contradiction to its other limits. */
export function updatedHostConfig(before: HostConfig, update: WantedUpdate): HostConfig {
  const { RestartPolicy, PidsLimit } = update;
  refuseContradictions(before, update);
  const after: HostConfig = { ...before };
  for (const key of NUMBERS) if ((update[key] ?? 0) !== 0) after[key] = update[key]!;
  for (const key of TEXTS) if ((update[key] ?? '') !== '') after[key] = update[key]!;
  for (const key of DEVICES) if ((update[key] ?? []).length > 0) Object.assign(after, { [key]: update[key] });
  if (PidsLimit !== undefined && PidsLimit !== null) after.PidsLimit = PidsLimit > 0 ? PidsLimit : null;
  refuseIf(
    after.Memory > 0 && after.MemorySwap > 0 && after.MemorySwap < after.Memory,
    'Minimum memoryswap limit should be larger than memory limit, see usage',
  );
  refuseIf(
    after.Memory === 0 && after.MemorySwap > 0,
    'You should always set the Memory limit when using Memoryswap limit, see usage',
  );
  const { CpuRealtimePeriod = 0, CpuRealtimeRuntime = 0 } = update;
  if (CpuRealtimePeriod !== 0 || CpuRealtimeRuntime !== 0) checkRealtime(after);
  const { Name = '', MaximumRetryCount = 0 } = RestartPolicy ?? {};
  if (Name === '') return after;
  if (before.AutoRemove && Name !== 'no') {
    throw contradiction('Restart policy cannot be updated because AutoRemove is enabled for the container');
  }
  return { ...after, RestartPolicy: { Name, MaximumRetryCount } };
}

function refuseContradictions(before: HostConfig, update: WantedUpdate): void {
  const { NanoCpus = 0, CpuPeriod = 0, CpuQuota = 0, Memory = 0, MemorySwap = 0 } = update;
  const hasNano = (before.NanoCpus ?? 0) > 0;
  const rules: [boolean, string, string][] = [
    [NanoCpus > 0 && before.CpuPeriod > 0, 'Nano CPUs', 'CPU Period'],
    [NanoCpus > 0 && before.CpuQuota > 0, 'Nano CPUs', 'CPU Quota'],
    [CpuPeriod > 0 && hasNano, 'CPU Period', 'NanoCPUs'],
    [CpuQuota > 0 && hasNano, 'CPU Quota', 'NanoCPUs'],
  ];
  for (const [applies, wanted, set] of rules) {
    if (applies) throw contradiction(`Conflicting options: ${wanted} cannot be updated as ${set} has already been set`);
  }
  if (Memory !== 0 && Memory > before.MemorySwap && MemorySwap === 0) {
    throw contradiction(
      'Memory limit should be smaller than already set memoryswap limit, update the memoryswap at the same time',
    );
  }
}

function contradiction(message: string): EngineError {
  return new EngineError('conflict', message);
}
