import { isBelow, type ApiVersion } from '../http/versions/api-version.ts';
import type { Steps } from '../http/versions/steps.ts';
import { withPlaceholderNames } from '../images/versions.ts';
import type { DiskUsageWire } from './disk-usage-schema.ts';
import type { Info } from './schema.ts';

/** Newest first; each applies to answers for older versions. */
export const infoSteps: Steps<unknown, Info> = [
  { below: '1.49', response: withoutFirewall },
  { below: '1.44', response: runtimesWithoutStatus },
  { below: '1.25', response: plainSecurityOptions },
];

export const diskUsageSteps: Steps<unknown, DiskUsageWire> = [
  { below: '1.52', response: listsAlone },
  { below: '1.43', response: imagesWithPlaceholderNames },
];

/** Whether a client can read the usage objects without the lists. */
export function knowsUsages(version: ApiVersion): boolean {
  return !isBelow(version, '1.52');
}

function imagesWithPlaceholderNames(usage: DiskUsageWire): DiskUsageWire {
  return usage.Images === undefined ? usage : { ...usage, Images: usage.Images.map(withPlaceholderNames) };
}

function listsAlone(usage: DiskUsageWire): DiskUsageWire {
  const {
    ImageUsage: _images,
    ContainerUsage: _containers,
    VolumeUsage: _volumes,
    BuildCacheUsage: _caches,
    ...lists
  } = usage;
  return lists;
}

function withoutFirewall({ FirewallBackend: _later, ...info }: Info): Info {
  return info as Info;
}

function runtimesWithoutStatus({ Runtimes, ...info }: Info): Info {
  const plain = Object.entries(Runtimes).map(([name, { status: _later, ...runtime }]) => [name, runtime] as const);
  return { ...info, Runtimes: Object.fromEntries(plain) };
}

/** Older clients know the names alone: `seccomp` for `name=seccomp,profile=default`. */
function plainSecurityOptions({ SecurityOptions, ...info }: Info): Info {
  return { ...info, SecurityOptions: SecurityOptions.map((option) => /^name=([^,]*)/.exec(option)?.[1] ?? option) };
}
