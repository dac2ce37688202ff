import type { SpecDescription } from '../description.ts';

/** The kernel's files that a container does not see; some tell about the work of other containers. */
export const DEFAULT_MASKED: readonly string[] = [
  ...['/proc/asound', '/proc/acpi', '/proc/interrupts', '/proc/kcore', '/proc/keys', '/proc/latency_stats'],
  ...['/proc/timer_list', '/proc/timer_stats', '/proc/sched_debug', '/proc/scsi', '/sys/firmware'],
  '/sys/devices/virtual/powercap',
];

/** Those that it sees and cannot change. */
export const DEFAULT_READ_ONLY: readonly string[] = [
  ...['/proc/bus', '/proc/fs', '/proc/irq', '/proc/sys', '/proc/sysrq-trigger'],
];

/** The defaults also for records without a list: a container of an older version must not see more. */
export function hiddenPaths({ maskedPaths, readonlyPaths, privileged }: SpecDescription): {
  maskedPaths: readonly string[];
  readonlyPaths: readonly string[];
} {
  return {
    maskedPaths: maskedPaths ?? (privileged ? [] : DEFAULT_MASKED),
    readonlyPaths: readonlyPaths ?? (privileged ? [] : DEFAULT_READ_ONLY),
  };
}
