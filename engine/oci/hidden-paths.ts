import { CGROUP_ROOT, detectCgroups, type Cgroups } from '../host/cgroups.ts';
import type { SpecDescription } from './description.ts';
import type { OciMount } from './mounts.ts';

/** What a container does not see of the kernel's own files. */
export const DEFAULT_MASKED: readonly string[] = [
  ...['/proc/asound', '/proc/acpi', '/proc/kcore', '/proc/keys', '/proc/latency_stats', '/proc/timer_list'],
  ...['/proc/timer_stats', '/proc/sched_debug', '/proc/scsi', '/sys/firmware'],
];

/** What it sees and cannot change. */
export const DEFAULT_READ_ONLY: readonly string[] = [
  ...['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
];

/** The defaults where nothing else is recorded: a container of an older version must not see more. */
export function hiddenPaths(
  { maskedPaths, readonlyPaths, root, privileged }: SpecDescription,
  mounts: readonly OciMount[],
): {
  maskedPaths: readonly string[];
  readonlyPaths: readonly string[];
} {
  const readOnly = readonlyPaths ?? (privileged ? [] : DEFAULT_READ_ONLY);
  return {
    maskedPaths: maskedPaths ?? (privileged ? [] : DEFAULT_MASKED),
    readonlyPaths: [...readOnly, ...(root.isReadOnly ? readOnlyCgroups(mounts) : [])],
  };
}

let hierarchies: readonly string[] | undefined;

/**
 * Version 1 of cgroups lies on a tmpfs, which both runtimes leave writable: a place that a container with a read-only
 * root must not have. With it crun makes writable again what is mounted on it, so each hierarchy is named after it. That
 * is a dozen mounts; with a root of its own to write to, a container gains nothing by that tmpfs.
 */
function readOnlyCgroups(mounts: readonly OciMount[]): readonly string[] {
  const isOurs = mounts.some(({ type, options }) => type === 'cgroup' && options.includes('ro'));
  if (!isOurs) return []; // the client's own, or that of a privileged container
  hierarchies ??= versionOneHierarchies(detectCgroups());
  return hierarchies;
}

function versionOneHierarchies({ version, mounts }: Cgroups): string[] {
  return version === 1 ? [CGROUP_ROOT, ...mounts] : [];
}
