import { HostConfigBody } from './host-config-schema.ts';

type Fields = keyof HostConfigBody;

/** A body with a HostConfig, and fields beside it that belong into one, as old clients write them. */
type Body = HostConfigBody & Readonly<{ HostConfig?: HostConfigBody | undefined; Cpuset?: string | undefined }>;

/** Fields that were moved into HostConfig when it was there already. */
const MOVED = ['Memory', 'MemorySwap', 'CpuShares', 'CpusetCpus', 'VolumeDriver'] as const satisfies readonly Fields[];

/**
 * The HostConfig of a creation. Without one all its fields count beside it, otherwise those moved later, where HostConfig
 * has none. `Cpuset` is the oldest name of `CpusetCpus`.
 */
export function hostConfigOf({ HostConfig, Cpuset = '', ...body }: Body): HostConfigBody {
  const beside: HostConfigBody = { ...(Cpuset !== '' && { CpusetCpus: Cpuset }), ...body };
  if (HostConfig === undefined) return pick(beside, Object.keys(HostConfigBody.properties) as Fields[]);
  const missing = MOVED.filter((field) => !HostConfig[field]);
  return { ...HostConfig, ...pick(beside, missing) };
}

function pick(fields: HostConfigBody, names: readonly Fields[]): HostConfigBody {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => names.includes(name as Fields)));
}
