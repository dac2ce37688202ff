import { chmodSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

import { spreadFoldersIn } from '../host/files/spread-folders.ts';
import { EngineError } from '../lib/errors.ts';
import type { SetAside } from '../trees/set-aside.ts';
import { FIRST_PROJECT, SizeLimits } from '../trees/size-limits.ts';
import { bytesBelow } from '../trees/size.ts';
import { Trash } from '../trees/trash.ts';

const TRASH = '.trash';

/** The parts of an overlay mount that are the container's own. */
type Places = { upper: string; work: string; target: string };

/** The containers' writable layers: a folder each, `<data-root>/writable/<id>`. */
export class WritableLayers implements AsyncDisposable {
  /** The folder in which roots are mounted. */
  readonly directory: string;
  readonly limits: SizeLimits;
  readonly #trash: Trash;

  static folder(dataRoot: string): string {
    return join(dataRoot, 'writable');
  }

  /** `projects`: those of the folders of existing containers. */
  constructor(dataRoot: string, projects: Iterable<number>, onFailure: (error: unknown, path: string) => void) {
    this.directory = WritableLayers.folder(dataRoot);
    mkdirSync(this.directory, { recursive: true, mode: 0o700 });
    spreadFoldersIn(this.directory);
    const trash = join(this.directory, TRASH);
    this.#trash = new Trash(trash, onFailure);
    this.limits = new SizeLimits(trash, FIRST_PROJECT.containers, projects);
  }

  /** `prepare` is called with the new, empty folder. */
  make(containerId: string, prepare: (folder: string) => void = () => undefined): void {
    const { upper, work, target } = this.places(containerId);
    const folder = join(this.directory, containerId);
    mkdirSync(folder, { mode: 0o710 });
    prepare(folder);
    for (const part of [upper, work, target]) mkdirSync(part);
    // The mode of the container's root folder, set regardless of the daemon's umask.
    chmodSync(upper, 0o755);
  }

  places(containerId: string): Places {
    const folder = join(this.directory, containerId);
    return { upper: join(folder, 'upper'), work: join(folder, 'work'), target: join(folder, 'merged') };
  }

  /** Throws `failed` when the container's own files are missing. */
  check(containerId: string): void {
    const { upper } = this.places(containerId);
    if (!existsSync(upper)) throw new EngineError('failed', `the container's own files are missing: ${upper}`);
  }

  /** Removes the files in the background; `forget` removes the record that names them. May be called twice. */
  remove(containerId: string, forget: () => void): void {
    this.#trash.take(join(this.directory, containerId), forget);
  }

  /** The size of the container's own files. */
  async bytes(containerId: string): Promise<number> {
    return await bytesBelow(this.places(containerId).upper);
  }

  /** Sets aside folders without a container. */
  setAsideAllBut(isOwned: (name: string) => boolean, setAside: SetAside): void {
    for (const name of readdirSync(this.directory)) {
      if (name !== TRASH && !isOwned(name)) setAside.take(join(this.directory, name));
    }
  }

  /** Resolves when all removals so far are done. */
  async settled(): Promise<void> {
    await this.#trash.emptied();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#trash[Symbol.asyncDispose]();
  }
}
