import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { KeyLock } from '../lib/key-lock.ts';
import type { Overlay } from './layers.ts';

const execute = promisify(execFile);

/** Overlays that the daemon itself has mounted; users of the same one share its mount. */
export class HostMounts {
  readonly #users = new Map<string, number>();
  readonly #locks = new KeyLock();

  async mount(overlay: Overlay): Promise<AsyncDisposable & { path: string }> {
    const { target } = overlay;
    using _lock = await this.#locks.hold(target);
    const users = this.#users.get(target) ?? 0;
    if (users === 0) await mountOverlay(overlay);
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
    await execute('umount', [target]);
  }
}

/** A child mounts, because only a process of its own can stand in `base` while the others go on. */
async function mountOverlay({ base, lower, upper, work, target }: Overlay): Promise<void> {
  const options = `lowerdir=${lower.join(':')},upperdir=${escape(upper)},workdir=${escape(work)}`;
  await execute('mount', ['-i', '-t', 'overlay', 'overlay', '-o', options, target], { cwd: base });
}

/** A comma or a backslash in the data root would end the option. */
function escape(path: string): string {
  return path.replaceAll(/[\\,:]/g, String.raw`\$&`);
}
