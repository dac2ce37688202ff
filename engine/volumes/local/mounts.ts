import { realpathSync } from 'node:fs';
import { join } from 'node:path';

import { mountByWords, type MountRequest } from '../../host/mounts/mount-by-words.ts';
import { mountTable } from '../../host/mounts/mount-table.ts';
import { mountBind, setPropagation, unmount, unmountInBackground } from '../../host/mounts/mount.ts';
import { KeyLock } from '../../lib/concurrency/key-lock.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { withAddress } from './options.ts';

/**
 * The mounts of volumes with options: one mount for all containers with the volume, from the first to the last.
 *
 * The mounts outlive the daemon, as the containers do. Each shim has a copy of all mounts at its start, so the folder
 * of the volumes is a shared mount: unmounting here unmounts it in all shims.
 */
export class LocalMounts {
  readonly #usersByPath = new Map<string, Set<string>>();
  readonly #locks = new KeyLock();
  readonly #directory: string;

  /** `directory` holds the folders of all volumes. */
  constructor(directory: string) {
    this.#directory = realpathSync(directory);
  }

  /** Throws `failed`, with the kernel's reason, if it cannot be mounted. */
  async hold(name: string, request: MountRequest, user: string): Promise<void> {
    const path = this.#pathOf(name);
    using _lock = await this.#locks.hold(path);
    const users = this.#usersByPath.get(path) ?? new Set();
    if (users.size === 0) await this.#mount(path, request);
    this.#usersByPath.set(path, users.add(user));
  }

  /** Unmounts it after its last user. */
  async leave(name: string, user: string): Promise<void> {
    const path = this.#pathOf(name);
    using _lock = await this.#locks.hold(path);
    const users = this.#usersByPath.get(path) ?? new Set();
    users.delete(user);
    if (users.size > 0) return;
    await unmountAll(path);
    this.#usersByPath.delete(path);
  }

  /** At the daemon's start, with the users from before it. Without a user it is unmounted. */
  async adopt(name: string, users: readonly string[]): Promise<void> {
    const path = this.#pathOf(name);
    if (users.length > 0 && isMounted(path)) this.#usersByPath.set(path, new Set(users));
    else await unmountAll(path);
  }

  /** To be called before its folder is removed: a mount there belongs to a user, and is not removed with it. */
  async drop(name: string): Promise<void> {
    const path = this.#pathOf(name);
    using _lock = await this.#locks.hold(path);
    const users = this.#usersByPath.get(path)?.size ?? 0;
    if (users > 0) throw new EngineError('conflict', 'volume has active mounts');
    await unmountAll(path);
  }

  async #mount(path: string, request: MountRequest): Promise<void> {
    try {
      if (request.device === '') throw new Error('missing device in volume options');
      this.#share();
      const known = await withAddress(request);
      await mountByWords(known, path).catch((error: unknown) => {
        throw new Error(`failed to mount local volume: ${(error as Error).message}`, { cause: error });
      });
    } catch (error) {
      const reason = messageOf(error);
      const message = `error while mounting volume '${path}': ${reason}`;
      throw new EngineError('failed', message, { cause: error });
    }
  }

  #share(): void {
    if (!isMounted(this.#directory)) mountBind(this.#directory, this.#directory);
    setPropagation(this.#directory, 'shared');
  }

  #pathOf(name: string): string {
    return join(this.#directory, name, '_data');
  }
}

/**
 * Several if another program has mounted on top. A process that uses the mount keeps it busy: it then goes at the end
 * of that use.
 */
async function unmountAll(path: string): Promise<void> {
  while (isMounted(path)) {
    try {
      await unmountInBackground(path);
    } catch (error) {
      if (!hasCode(error, 'EBUSY')) throw error;
      unmount(path, { lazy: true });
    }
  }
}

/** Asks only the kernel's table: a look at the folder could wait for a server. */
function isMounted(path: string): boolean {
  return mountTable().some((mount) => mount.path === path);
}
