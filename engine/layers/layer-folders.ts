import { existsSync, mkdirSync, readdirSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';

import { spreadFoldersIn } from '../host/files/spread-folders.ts';
import { namesIn } from '../lib/folders.ts';
import { newId, shortId } from '../lib/ids.ts';
import type { SetAside } from '../trees/set-aside.ts';
import { Trash } from '../trees/trash.ts';
import { COMMON, makeCommonLayer, OLD_COMMON } from './common-layer.ts';
import { fillInitLayer } from './init-layer.ts';
import type { Layer } from './records.ts';

type Folder = Pick<Layer, 'folder'>;

const TRASH = '.trash';
/** The folder of the init layers, each under the name of the layer below it. */
const INIT = 'init';
const NO_IMAGE = 'none';
/** The name prefix of folders whose layer is incomplete. */
const NEW = 'new-';

/** The files of the extracted layers: a folder each, `<data-root>/layers/<folder>`. */
export class LayerFolders implements AsyncDisposable {
  readonly directory: string;
  readonly #trash: Trash;

  constructor(dataRoot: string, onFailure: (error: unknown, path: string) => void) {
    this.directory = join(dataRoot, 'layers');
    mkdirSync(this.directory, { recursive: true, mode: 0o700 });
    spreadFoldersIn(this.directory);
    makeCommonLayer(this.directory);
    this.#trash = new Trash(join(this.directory, TRASH), onFailure);
  }

  pathOf({ folder }: Folder): string {
    return join(this.directory, folder);
  }

  isWhole(layer: Folder): boolean {
    return existsSync(this.pathOf(layer));
  }

  /** A folder to extract into; disposing removes it, unless a layer has adopted it. */
  workspace(): Disposable & { path: string } {
    const path = join(this.directory, `${NEW}${shortId(newId())}`);
    mkdirSync(path, { mode: 0o755 });
    return { path, [Symbol.dispose]: () => this.#trash.take(path) };
  }

  /** The name of the init layer on top of a layer, or of an empty root. */
  initNameOf(top: Folder | undefined): string {
    return join(INIT, top?.folder ?? NO_IMAGE);
  }

  /** Creates a missing init layer on a chain, topmost first. */
  makeInit(chain: readonly Folder[]): void {
    const path = join(this.directory, this.initNameOf(chain[0]));
    if (existsSync(path)) return;
    using workspace = this.workspace();
    fillInitLayer(
      workspace.path,
      chain.map((layer) => this.pathOf(layer)),
    );
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    renameSync(workspace.path, path);
  }

  /** Makes a workspace the folder of a layer; it replaces the rest of an earlier one. */
  adopt(path: string, layer: Folder): void {
    this.#trash.take(this.pathOf(layer));
    renameSync(path, this.pathOf(layer));
  }

  /** Removes the files in the background; `forget` removes the record that names them. */
  remove(layer: Folder, forget: () => void): void {
    this.#trash.take(join(this.directory, this.initNameOf(layer)));
    this.#trash.take(this.pathOf(layer), forget);
  }

  /** Removes incomplete folders, and sets aside those without a layer; neither while the layers are unknown. */
  reconcile(
    known: readonly Layer[] | undefined,
    setAside: SetAside,
    orGoOn: (path: string, work: () => void) => void,
  ): void {
    const folders = known && new Set([COMMON, INIT, TRASH, ...known.map(({ folder }) => folder)]);
    for (const name of readdirSync(this.directory)) {
      const path = join(this.directory, name);
      if (name.startsWith(NEW) || name === OLD_COMMON) orGoOn(path, () => this.#trash.take(path));
      else if (folders?.has(name) === false) setAside.take(path);
    }
    for (const name of namesIn(join(this.directory, INIT))) {
      if (name === NO_IMAGE || folders?.has(name) !== false) continue;
      const path = join(this.directory, INIT, name);
      orGoOn(path, () => this.#trash.take(path));
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
