import { mountOverlay, unmount, unmountInBackground } from '../host/mount.ts';
import { hasCode } from '../lib/errors.ts';
import { KeyLock } from '../lib/key-lock.ts';
import type { Overlay } from './layers.ts';

/** Overlays that the daemon itself has mounted; several users share one mount. */
export class HostMounts {
  readonly #users = new Map<string, number>();
  readonly #locks = new KeyLock();

  async mount(overlay: Overlay): Promise<AsyncDisposable & { path: string }> {
    const { target } = overlay;
    using _lock = await this.#locks.hold(target);
    const users = this.#users.get(target) ?? 0;
    if (users === 0) mountFrom(overlay.base, overlay);
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
