import { closeSync } from 'node:fs';

import { holdAt } from '../host/files/held-files.ts';
import { attachMount } from '../host/mounts/mount-tree.ts';
import { mountOverlay, unmount, unmountInBackground } from '../host/mounts/mount.ts';
import { KeyLock } from '../lib/concurrency/key-lock.ts';
import { hasCode } from '../lib/errors.ts';
import type { Overlay } from './layers.ts';

/** Another process's mount of a root, as a descriptor of a copy. */
export type Borrow = () => Promise<number>;

/**
 * Overlays that the daemon itself has mounted; several users share one mount. A root that is already mounted in a shim
 * is used as a copy of that mount, because a writable layer can be mounted only once.
 */
export class HostMounts {
  readonly #users = new Map<string, number>();
  readonly #locks = new KeyLock();

  async mount(overlay: Overlay, borrow?: Borrow): Promise<AsyncDisposable & { path: string }> {
    const { target } = overlay;
    using _lock = await this.#locks.hold(target);
    const users = this.#users.get(target) ?? 0;
    if (users === 0) {
      if (borrow === undefined) mountFrom(overlay.base, overlay);
      else attachTo(target, await borrow());
    }
    this.#users.set(target, users + 1);
    return { path: target, [Symbol.asyncDispose]: async () => await this.#leave(target) };
  }

  async #leave(target: string): Promise<void> {
    using _lock = await this.#locks.hold(target);
    const users = this.#users.get(target)! - 1;
    if (users > 0) {
      this.#users.set(target, users);
      return;
    }
    this.#users.delete(target);
    try {
      await unmountInBackground(target);
    } catch (error) {
      // A reader of the mount table or of the folder keeps it busy; a lazy unmount goes when it is done.
      if (!hasCode(error, 'EBUSY')) throw error;
      unmount(target, { lazy: true });
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
