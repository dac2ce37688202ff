import { spawnSync } from 'node:child_process';
import { chmod, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import type { LocalUser } from './local-user.ts';

const root = dirname(dirname(import.meta.dirname));
/** Where the user finds this repository, whose own folders may be closed to others. */
const SEEN_AT = '/mnt';
const SHOW = 'mount --bind "$0" /mnt && exec "$@"';

const OVERLAY =
  'mount -t tmpfs none /mnt && cd /mnt && mkdir l u w m && mount -t overlay -o userxattr,lowerdir=l,upperdir=u,workdir=w none m';

/** Whether this machine lets ordinary users make namespaces, and mount overlays in them. Some administrators forbid it. */
export function usersMayHaveNamespaces(): boolean {
  const nobody = ['--reuid=65534', '--regid=65534', '--clear-groups'];
  const words = [...nobody, 'unshare', '--user', '--map-root-user', '--mount', '--net', 'sh', '-c', OVERLAY];
  return spawnSync('setpriv', words, { cwd: '/' }).status === 0;
}

/** A file of this repository, as the user finds it. */
export function seenByUser(path: string): string {
  return path.startsWith(`${root}/`) ? join(SEEN_AT, path.slice(root.length)) : path;
}

/** The words before a command of a user, who finds this repository below /mnt. */
export function asUser(user: LocalUser, directory: string): string[] {
  const variables = { XDG_RUNTIME_DIR: join(directory, 'run'), TMPDIR: '/tmp' };
  const words = user.words(join(directory, 'home'), variables);
  return ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', SHOW, root, ...words];
}

/** The words before those of a daemon that this user starts, as `./gantry daemon` has them. */
export function asRootless(user: LocalUser, directory: string): string[] {
  return [...asUser(user, directory), join(SEEN_AT, 'build/gantry-rootless'), join(directory, 'run/gantry')];
}

/** Makes the folders of an engine of this user in `directory`. */
export async function prepareForUser(user: LocalUser, directory: string): Promise<void> {
  await chmod(directory, 0o755);
  for (const name of ['run', 'home']) {
    await mkdir(join(directory, name), { mode: 0o700 });
    await user.own(join(directory, name));
  }
  await user.own(directory);
}
