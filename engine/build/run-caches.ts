import { readdirSync, utimesSync } from 'node:fs';
import { chmod, chown, mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

import type { Config } from '../config/daemon-config.ts';
import { sha256 } from '../layers/chain-id.ts';
import type { Background } from '../lib/background.ts';
import { KeyLock } from '../lib/key-lock.ts';
import { bytesBelow } from '../trees/size.ts';
import { Trash } from '../trees/trash.ts';

type Needs = {
  background: Background;
  live: { current: Config };
  log: { warn(details: object, message: string): void };
};
type Owner = Readonly<{ uid: number; gid: number; mode: number }>;

const TRASH = '.trash';
const FILES = 'files';

/**
 * The folders of `RUN --mount=type=cache`, by their ids: builds at the same time share them. The modification time of
 * the folder around the files is that of the last use; the least recently used are removed when all together exceed the
 * setting.
 */
export class RunCaches implements AsyncDisposable {
  readonly #background: Background;
  readonly #live: Needs['live'];
  readonly #log: Needs['log'];
  readonly #users = new Map<string, number>();
  #trash: Trash | undefined;
  readonly #trimming = new KeyLock();

  constructor({ background, live, log }: Needs) {
    this.#background = background;
    this.#live = live;
    this.#log = log;
  }

  /** The folder of an id, which is kept until it is disposed. */
  async take(id: string, { uid, gid, mode }: Owner): Promise<Disposable & { path: string }> {
    const name = sha256(id).replace('sha256:', '').slice(0, 32);
    this.#users.set(name, (this.#users.get(name) ?? 0) + 1); // before the first wait, so that no trimming removes it
    using undo = new DisposableStack();
    undo.defer(() => this.#leave(name));
    const folder = join(this.#folder, name);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const path = join(folder, FILES);
    if ((await mkdir(path, { recursive: true, mode: 0o700 })) !== undefined) {
      await chown(path, uid, gid);
      await chmod(path, mode);
    }
    const parts = undo.move();
    return { path, [Symbol.dispose]: () => parts.dispose() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#trash?.[Symbol.asyncDispose]();
  }

  get #folder(): string {
    return join(this.#live.current.dataRoot, 'build-caches');
  }

  #leave(name: string): void {
    const left = this.#users.get(name)! - 1;
    if (left > 0) this.#users.set(name, left);
    else this.#users.delete(name);
    const now = new Date();
    utimesSync(join(this.#folder, name), now, now);
    this.#background.run('trim the caches of builds', {}, async () => {
      using _lock = await this.#trimming.hold('');
      await this.#trim();
    });
  }

  async #trim(): Promise<void> {
    const names = readdirSync(this.#folder).filter((name) => name !== TRASH);
    const caches = await Promise.all(
      names.map(async (name) => {
        const path = join(this.#folder, name);
        return { name, path, bytes: await bytesBelow(path), usedAt: (await stat(path)).mtimeMs };
      }),
    );
    let bytes = caches.reduce((sum, cache) => sum + cache.bytes, 0);
    for (const cache of caches.toSorted((a, b) => a.usedAt - b.usedAt)) {
      if (bytes <= this.#live.current.buildCacheBytes) return;
      if (this.#users.has(cache.name)) continue;
      this.#trash ??= new Trash(join(this.#folder, TRASH), (error, path) =>
        this.#log.warn({ err: error, path }, 'a removed cache of builds is still there; the next removal tries again'),
      );
      this.#trash.take(cache.path);
      bytes -= cache.bytes;
    }
  }
}
