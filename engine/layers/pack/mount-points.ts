/**
 * The mount points, and the folders above them, that dockerd creates for every container in a layer of its own, and our
 * runtime in the writable one.
 */
const MOUNT_POINTS: ReadonlySet<string> = new Set([
  ...['/proc', '/sys', '/dev', '/dev/console', '/dev/pts', '/dev/shm'],
  ...['/etc', '/etc/hosts', '/etc/hostname', '/etc/resolv.conf'],
]);

/** Whether the engine creates this path in a container. */
export function isMountPoint(path: string): boolean {
  return MOUNT_POINTS.has(path);
}
