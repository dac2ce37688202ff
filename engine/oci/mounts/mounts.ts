import { statSync } from 'node:fs';
import { posix } from 'node:path';

import { CGROUP_ROOT, detectCgroups } from '../../host/cgroups/cgroups.ts';
import { flagsOfMount } from '../../host/mounts/mount-flags.ts';
import { isRootless } from '../../host/rootless.ts';
import type { DescribedMount, SpecDescription } from '../description.ts';
import { INIT_PATH } from '../init-program.ts';
import { tmpfsOptions } from './tmpfs-options.ts';

export type OciMount = {
  destination: string;
  type: string;
  source: string;
  options: string[];
  /** The source's path for this daemon, if it is another one. */
  visibleAt?: string;
};

const LIMITED = ['nosuid', 'noexec', 'nodev'];

const kernel = (destination: string, type: string, ...options: string[]): OciMount => ({
  destination,
  type,
  source: type,
  options: ['nosuid', 'noexec', 'nodev', ...options],
});

/** All mounts, in no order; `init` is the engine's program for the first process. */
export function ociMounts(
  {
    root,
    namespaces,
    privileged,
    devices,
    writableCgroups,
    shm,
    files,
    mounts,
    deviceMounts,
    tmpfs: further,
    users,
  }: SpecDescription,
  init: string | undefined,
): OciMount[] {
  const writable = privileged ? 'rw' : 'ro';
  const list: OciMount[] = [
    // Users can mount no procfs of the host's processes, but show the one that is there.
    isRootless && namespaces.pid === 'host' ? bind('/proc', '/proc', ['rbind', ...LIMITED]) : kernel('/proc', 'proc'),
    {
      destination: '/dev',
      type: 'tmpfs',
      source: 'tmpfs',
      options: ['nosuid', 'strictatime', 'mode=755', 'size=65536k'],
    },
    {
      destination: '/dev/pts',
      type: 'devpts',
      source: 'devpts',
      options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', 'gid=5'],
    },
    kernel('/sys', 'sysfs', writable),
    ...(isRootless ? [] : [kernel('/sys/fs/cgroup', 'cgroup', writableCgroups ? 'rw' : writable)]),
    ...(isRootless && namespaces.ipc === 'host' ? [] : [kernel('/dev/mqueue', 'mqueue')]),
  ];
  // A mount resets options that are not repeated. A container's memory needs them; the host's keeps its own.
  if (shm !== undefined && 'path' in shm) {
    const limited = shm.isHosts ? [] : ['nosuid', 'noexec', 'nodev'];
    list.push(bind('/dev/shm', shm.path, ['rw', ...limited]));
  } else if (shm !== undefined) {
    list.push({ ...kernel('/dev/shm', 'tmpfs', 'mode=1777', `size=${shm.sizeBytes}`), source: 'shm' });
  }
  if (files !== undefined) {
    const access = root.isReadOnly ? 'ro' : 'rw';
    list.push(bind('/etc/resolv.conf', files.resolvConf, [access]));
    list.push(bind('/etc/hostname', files.hostname, [access]));
    list.push(bind('/etc/hosts', files.hosts, [access]));
  }
  if (init !== undefined) list.push(bind(INIT_PATH, init, ['ro']));
  for (const { hostPath, containerPath, type = '', options = [] } of deviceMounts) {
    const isBind = type === '' || type === 'bind';
    const words = isBind && !options.some((word) => /^r?bind$/.test(word)) ? ['rbind', ...options] : options;
    list.push({ destination: containerPath, type: isBind ? 'bind' : type, source: hostPath, options: words });
  }
  // Users, and root of a map, make no nodes of devices, and show those that are there.
  if (isRootless || users !== undefined)
    for (const { path, inContainer } of devices) list.push(bind(inContainer, path, ['rw']));
  for (const mount of mounts) list.push(userMount(mount));
  // Over a borrowed volume, as in dockerd.
  for (const [destination, options] of Object.entries(further)) {
    list.push(tmpfs(posix.normalize(destination).replace(/\/$/, ''), options));
  }
  // The client's own mounts win over ours at the same place.
  return [...new Map(list.map((mount) => [mount.destination, mount])).values()];
}

/**
 * Version 1 of cgroups lies on a tmpfs, which both runtimes leave writable. It is made read-only after all mounts on
 * it; the client's own mount there, and that of a privileged container, are as requested. In a user namespace crun would
 * bind the machine's own folder over it instead; there only the hierarchies are read-only, as with dockerd.
 */
export function readOnlyCgroups(mounts: readonly OciMount[], hasUsers: boolean): OciMount[] {
  const isOurs = mounts.some(({ type, options }) => type === 'cgroup' && options.includes('ro'));
  if (!isOurs || hasUsers || detectCgroups().version !== 1) return [];
  const options = ['bind', 'remount', 'ro', 'nosuid', 'noexec', 'nodev'];
  return [{ destination: CGROUP_ROOT, type: 'bind', source: CGROUP_ROOT, options }];
}

function userMount({ type, destination, source, writable, propagation, ...mount }: DescribedMount): OciMount {
  if (type === 'tmpfs') return tmpfs(destination, mount.options ?? '');
  // A bind inherits the flags of its source, such as `noexec`; crun would mount it anew without them.
  const flags = new Set([...(writable ? [] : ['ro']), ...flagsOfMount(mount.visibleAt ?? source)]);
  const isFlat = mount.recursive === false;
  // crun 1.8 takes no file for this, and nothing is mounted below one.
  const hasBelow = !isFlat && isFolder(mount.visibleAt ?? source);
  if (!writable && mount.readOnlyBelow === true && hasBelow) flags.add('rro');
  // crun takes the recursion of a propagation for that of the bind.
  const spread = propagation || 'rprivate';
  const options = isFlat ? ['bind', ...flags, spread.replace(/^r/, '')] : ['rbind', ...flags, spread];
  return { destination, type: 'bind', source, options, ...(mount.visibleAt && { visibleAt: mount.visibleAt }) };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

function bind(destination: string, source: string, options: string[]): OciMount {
  return { destination, type: 'bind', source, options: ['rbind', ...options, 'rprivate'] };
}

function tmpfs(destination: string, options: string): OciMount {
  return { destination, type: 'tmpfs', source: 'tmpfs', options: tmpfsOptions(options) };
}
