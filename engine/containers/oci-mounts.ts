import type { HostConfig } from './host-config-schema.ts';
import type { MountPoint } from './store.ts';

export type OciMount = { destination: string; type: string; source: string; options: string[] };

type Files = { hostname: string; hosts: string; resolvConf: string };

const kernel = (destination: string, type: string, ...options: string[]): OciMount => ({
  destination,
  type,
  source: type,
  options: ['nosuid', 'noexec', 'nodev', ...options],
});

/** Everything that is mounted into the container, outer folders before inner ones. `shm` is a host path to share. */
export function ociMounts(
  hostConfig: HostConfig,
  mounts: readonly MountPoint[],
  files: Files | undefined,
  shm: string | undefined,
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
  if (shm !== undefined) list.push(bind('/dev/shm', shm, ['rw']));
  else if (hostConfig.IpcMode !== 'none') {
    list.push({ ...kernel('/dev/shm', 'tmpfs', 'mode=1777', `size=${hostConfig.ShmSize}`), source: 'shm' });
  }
  if (files !== undefined) {
    list.push(bind('/etc/resolv.conf', files.resolvConf, ['rw']));
    list.push(bind('/etc/hostname', files.hostname, ['rw']));
    list.push(bind('/etc/hosts', files.hosts, ['rw']));
  }
  for (const [destination, options] of Object.entries(hostConfig.Tmpfs ?? {})) list.push(tmpfs(destination, options));
  for (const mount of mounts) {
    const access = mount.writable ? 'rw' : 'ro';
    const propagation = mount.propagation === '' ? 'rprivate' : mount.propagation;
    if (mount.type === 'tmpfs') list.push(tmpfs(mount.destination, mount.mode));
    else list.push(bind(mount.destination, mount.source, [access, propagation]));
  }
  // The client's own mounts win over ours at the same place, and an outer one must not cover an inner one.
  const last = new Map(list.map((mount) => [mount.destination, mount]));
  return [...last.values()].toSorted((a, b) => depth(a.destination) - depth(b.destination));
}

function bind(destination: string, source: string, options: string[]): OciMount {
  const explicit = options.some((option) => /(private|shared|slave)$/.test(option));
  return { destination, type: 'bind', source, options: ['rbind', ...options, ...(explicit ? [] : ['rprivate'])] };
}

function tmpfs(destination: string, options: string): OciMount {
  const given = options.split(',').filter((option) => option !== '');
  return { destination, type: 'tmpfs', source: 'tmpfs', options: ['noexec', 'nosuid', 'nodev', ...given] };
}

function depth(path: string): number {
  return path.split('/').filter((part) => part !== '').length;
}
