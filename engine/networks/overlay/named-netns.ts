import { closeSync, mkdirSync, openSync, rmSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';

import { mountBind, unmount } from '../../host/mounts/mount.ts';
import { newNetns } from '../../host/namespaces.ts';
import { hasCode } from '../../lib/errors.ts';
import { prepareNetns } from '../endpoints/namespace.ts';

/** The file system of namespaces. */
const NSFS = 0x6e_73_66_73;

/** The network namespace that is mounted at a path, as an open descriptor; undefined where none is. */
export function openNamedNetns(path: string): number | undefined {
  try {
    // Without a mount it is the place for one: the daemon was killed before.
    return statfsSync(path).type === NSFS ? openSync(path, 'r') : undefined;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

/** Opens the namespace; without one a new namespace is mounted there, which stays when this process ends. */
export function ensureNamedNetns(path: string): number {
  const existing = openNamedNetns(path);
  if (existing !== undefined) return existing;
  const netns = newNetns(prepareNetns);
  using undo = new DisposableStack();
  undo.defer(() => closeSync(netns));
  nameNetns(netns, path);
  undo.move();
  return netns;
}

/** Mounts a namespace at a path, so that it outlives this process. `netns` stays the caller's. */
export function nameNetns(netns: number, path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  closeSync(openSync(path, 'a', 0o600));
  mountBind(`/proc/self/fd/${netns}`, path);
}

/** Gives up a namespace: it ends with its last user. A missing one is not an error. */
export function removeNamedNetns(path: string): void {
  const netns = openNamedNetns(path);
  if (netns !== undefined) {
    closeSync(netns);
    unmount(path, { lazy: true });
  }
  rmSync(path, { force: true });
}
