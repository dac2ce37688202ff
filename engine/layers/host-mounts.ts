import { closeSync } from 'node:fs';

import { holdAt } from '../host/files/held-files.ts';
import { attachMount } from '../host/mounts/mount-tree.ts';
import { mountOverlay, unmount, unmountInBackground } from '../host/mounts/mount.ts';
import type { IdMap } from '../host/users/id-map.ts';
import { KeyLock } from '../lib/concurrency/key-lock.ts';
import { hasCode } from '../lib/errors.ts';
import type { Overlay } from './layers.ts';

/** Another process's mount of a root, as a descriptor of a copy. */
export type Borrow = () => Promise<number>;

/** A mounted root; with a map its owners are those of the host. */
export type HostMount = AsyncDisposable & Readonly<{ path: string; idMap: IdMap | undefined }>;

/** `unmounted` resolves once the last user has left and the mount is gone. */
type Used = Readonly<{ users: number; idMap: IdMap | undefined; unmounted: PromiseWithResolvers<void> }>;

/**
 * Overlays that the daemon itself has mounted; several users share one mount. A root that is already mounted in a shim
 * is used as a copy of that mount, because a writable layer can be mounted only once.
 */
export class HostMounts {
  readonly #users = new Map<string, Used>();
  readonly #locks = new KeyLock();

  /** `idMap`: that of the borrowed mount; all users of a mount at the same time have the same one. */
  async mount(overlay: Overlay, borrow?: Borrow, idMap?: IdMap): Promise<HostMount> {
    const { target } = overlay;
    using _lock = await this.#locks.hold(target);
    const used = this.#users.get(target) ?? { users: 0, idMap, unmounted: Promise.withResolvers<void>() };
    if (used.users === 0) {
      if (borrow === undefined) mountFrom(overlay.base, overlay);
      else attachTo(target, await borrow());
    }
    this.#users.set(target, { ...used, users: used.users + 1 });
    return { path: target, idMap: used.idMap, [Symbol.asyncDispose]: async () => await this.#leave(target) };
  }

  /** Resolves once nobody works on the root at `target` any more and it is unmounted; at once if nobody does. */
  async unmounted(target: string): Promise<void> {
    await this.#users.get(target)?.unmounted.promise;
  }

  async #leave(target: string): Promise<void> {
    using _lock = await this.#locks.hold(target);
    const used = this.#users.get(target)!;
    if (used.users > 1) {
      this.#users.set(target, { ...used, users: used.users - 1 });
      return;
    }
    try {
      await unmountInBackground(target);
    } catch (error) {
      // A reader of the mount table or of the folder keeps it busy; a lazy unmount goes when it is done.
      if (!hasCode(error, 'EBUSY')) throw error;
      unmount(target, { lazy: true });
    } finally {
      this.#users.delete(target);
      used.unmounted.resolve();
    }
  }
}

function attachTo(target: string, tree: number): void {
  using held = new DisposableStack();
  held.adopt(tree, closeSync);
  attachMount(tree, held.adopt(holdAt(-1, Buffer.from(target).toString('latin1')), closeSync));
}

/** The lower folders are relative to `base`, so the working directory changes during this synchronous call. */
function mountFrom(base: string, overlay: Overlay): void {
  const before = process.cwd();
  process.chdir(base);
  try {
    mountOverlay(overlay);
  } finally {
    process.chdir(before);
  }
}
