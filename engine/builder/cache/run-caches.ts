import { utimesSync } from 'node:fs';
import { chmod, chown, mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';

import type { Config } from '../../config/daemon-config.ts';
import type { Engine } from '../../engine.ts';
import { sha256 } from '../../layers/chain-id.ts';
import type { Background } from '../../lib/concurrency/background.ts';
import { KeyLock } from '../../lib/concurrency/key-lock.ts';
import { namesIn } from '../../lib/folders.ts';
import { bytesBelow } from '../../trees/size.ts';
import { Trash } from '../../trees/trash.ts';

type Needs = Pick<Engine, 'background'> & {
  live: { current: Config };
  log: { warn(details: object, message: string): void };
};
type Owner = Readonly<{ uid: number; gid: number; mode: number }>;

/** The folder of an id. */
export type RunCache = Readonly<{
  /** Made of the id that the build named. */
  id: string;
  bytes: number;
  createdAt: Temporal.Instant;
  usedAt: Temporal.Instant;
  isUsed: boolean;
}>;

type Sharing = 'shared' | 'private' | 'locked';

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
  readonly #locks = new KeyLock();

  constructor({ background, live, log }: Needs) {
    this.#background = background;
    this.#live = live;
    this.#log = log;
  }

  /** Waits for others that have locked the folder of this id, unless the signal ends that. */
  async lock(id: string, signal: AbortSignal): Promise<Disposable> {
    const lock = this.#locks.hold(id);
    const { promise: gone, reject } = Promise.withResolvers<never>();
    const end = (): void => reject(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    try {
      signal.throwIfAborted();
      return await Promise.race([lock, gone]);
    } catch (error) {
      this.#background.run('give back a lock that came late', {}, async () => (await lock)[Symbol.dispose]());
      throw error;
    } finally {
      signal.removeEventListener('abort', end);
    }
  }

  /** The folder of an id, which is kept until it is disposed; a private one has no other user meanwhile. */
  async take(id: string, { uid, gid, mode }: Owner, sharing: Sharing): Promise<Disposable & { path: string }> {
    const isTaken = (each: string): boolean => sharing === 'private' && this.#users.has(each);
    let name = nameOf(id);
    for (let more = 1; isTaken(name); more += 1) name = nameOf(`${id}\0${more}`);
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

  /** All folders, measured now. */
  async list(): Promise<RunCache[]> {
    using _lock = await this.#trimming.hold('');
    return await this.#measured();
  }

  async #measured(): Promise<RunCache[]> {
    const names = namesIn(this.#folder).filter((name) => name !== TRASH);
    return await Promise.all(
      names.map(async (name) => {
        const path = join(this.#folder, name);
        const { birthtimeMs, mtimeMs } = await stat(path);
        return {
          id: name,
          bytes: await bytesBelow(path),
          createdAt: Temporal.Instant.fromEpochMilliseconds(Math.floor(birthtimeMs)),
          usedAt: Temporal.Instant.fromEpochMilliseconds(Math.floor(mtimeMs)),
          isUsed: this.#users.has(name),
        };
      }),
    );
  }

  /** Removes unused folders that match, the least recently used first, until all together take at most `keptBytes`. */
  async prune(
    keptBytes: (usedBytes: number) => number,
    matches: (cache: RunCache) => boolean,
  ): Promise<{ ids: string[]; bytes: number }> {
    using _lock = await this.#trimming.hold('');
    const pruned: { ids: string[]; bytes: number } = { ids: [], bytes: 0 };
    const caches = await this.#measured();
    let left = caches.reduce((sum, { bytes }) => sum + bytes, 0);
    const limit = keptBytes(left);
    for (const cache of caches.toSorted((a, b) => Temporal.Instant.compare(a.usedAt, b.usedAt))) {
      if (left <= limit) break;
      if (this.#users.has(cache.id) || !matches(cache)) continue;
      this.#remove(cache.id);
      left -= cache.bytes;
      pruned.ids.push(cache.id);
      pruned.bytes += cache.bytes;
    }
    return pruned;
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
      await this.prune(
        () => this.#live.current.buildCacheBytes,
        () => true,
      );
    });
  }

  #remove(name: string): void {
    this.#trash ??= new Trash(join(this.#folder, TRASH), (error, path) =>
      this.#log.warn({ err: error, path }, 'a removed cache of builds is still there; the next removal tries again'),
    );
    this.#trash.take(join(this.#folder, name));
  }
}

function nameOf(id: string): string {
  return sha256(id).replace('sha256:', '').slice(0, 32);
}
