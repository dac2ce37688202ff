import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Engine } from '../../engine.ts';
import { newId } from '../../lib/ids.ts';
import { ARRIVING, pluginsFolder, ROOTFS } from '../places.ts';

/** A plugin that arrives: `plugin` becomes its folder, or a part of it. Disposing removes the rest. */
export class Arrival implements AsyncDisposable {
  readonly id = newId();
  /** For temporary files. */
  readonly folder: string;
  readonly plugin: string;
  readonly root: string;

  constructor({ config }: Pick<Engine, 'config'>) {
    this.folder = join(pluginsFolder(config), ARRIVING, this.id);
    this.plugin = join(this.folder, 'plugin');
    this.root = join(this.plugin, ROOTFS);
    mkdirSync(join(this.plugin, 'layers'), { recursive: true, mode: 0o700 });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }
}
