import { posix } from 'node:path';

import type { HostConfig } from '../containers/settings/host-config-schema.ts';
import type { MountPoint } from '../containers/store.ts';
import { INIT_PATH } from './init-program.ts';
import { tmpfsOptions } from './tmpfs-options.ts';

export type OciMount = { destination: string; type: string; source: string; options: string[] };

type Files = { hostname: string; hosts: string; resolvConf: string };

const kernel = (destination: string, type: string, ...options: string[]): OciMount => ({
  destination,
  type,
  source: type,
  options: ['nosuid', 'noexec', 'nodev', ...options],
});

type OfTheHost = Readonly<{
  /** Undefined where the container uses another one's. */
  files: Files | undefined;
  /** A /dev/shm to share. */
  shm: string | undefined;
  /** A program to be the first process. */
  init: string | undefined;
}>;

/** Everything that is mounted into the container, outer folders before inner ones. */
export function ociMounts(
  hostConfig: HostConfig,
  mounts: readonly MountPoint[],
  { files, shm, init }: OfTheHost,
): OciMount[] {
  const writable = hostConfig.Privileged ? 'rw' : 'ro';
  const list: OciMount[] = [
    kernel('/proc', 'proc'),
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
    kernel('/sys/fs/cgroup', 'cgroup', writable),
    kernel('/dev/mqueue', 'mqueue'),
  ];
  // What is not said again of the memory of a container would be lost; the host's is as the host has it.
  const limited = hostConfig.IpcMode === 'host' ? [] : ['nosuid', 'noexec', 'nodev'];
  if (shm !== undefined) list.push(bind('/dev/shm', shm, ['rw', ...limited]));
  else if (hostConfig.IpcMode !== 'none') {
    list.push({ ...kernel('/dev/shm', 'tmpfs', 'mode=1777', `size=${hostConfig.ShmSize}`), source: 'shm' });
  }
  if (files !== undefined) {
    list.push(bind('/etc/resolv.conf', files.resolvConf, ['rw']));
    list.push(bind('/etc/hostname', files.hostname, ['rw']));
    list.push(bind('/etc/hosts', files.hosts, ['rw']));
  }
  if (init !== undefined) list.push(bind(INIT_PATH, init, ['ro']));
  for (const mount of mounts) list.push(userMount(mount));
  // Over a borrowed volume, as in dockerd.
  for (const [destination, options] of Object.entries(hostConfig.Tmpfs ?? {})) {
    list.push(tmpfs(posix.normalize(destination).replace(/\/$/, ''), options));
  }
  // The client's own mounts win over ours at the same place, and an outer one must not cover an inner one.
  const last = new Map(list.map((mount) => [mount.destination, mount]));
  return [...last.values()].toSorted((a, b) => depth(a.destination) - depth(b.destination));
}

function userMount({ type, destination, source, writable, propagation, ...mount }: MountPoint): OciMount {
  if (type === 'tmpfs') return tmpfs(destination, mount.options ?? '');
  const access = writable ? 'rw' : 'ro';
  const options = [mount.recursive === false ? 'bind' : 'rbind', access, propagation || 'rprivate'];
  return { destination, type: 'bind', source, options };
}

function bind(destination: string, source: string, options: string[]): OciMount {
  return { destination, type: 'bind', source, options: ['rbind', ...options, 'rprivate'] };
}

function tmpfs(destination: string, options: string): OciMount {
  return { destination, type: 'tmpfs', source: 'tmpfs', options: tmpfsOptions(options) };
}

function depth(path: string): number {
  return path.split('/').filter((part) => part !== '').length;
}
