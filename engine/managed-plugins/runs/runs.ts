import { realpathSync } from 'node:fs';
import { join, posix } from 'node:path';

import type { Config } from '../../config/daemon-config.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import type { OwnPlugin, OwnPlugins } from '../../plugins/plugins.ts';
import type { Shim } from '../../runtime/shim/shim.ts';
import { propagatedFolder, rootOf, socketFolder } from '../places.ts';
import { configOf } from '../plugin-config.ts';
import type { InstalledPlugin, InstalledPlugins } from '../store.ts';
import { hideView, showView } from './views.ts';

/** The state of an enabled plugin besides its record. */
export type PluginRun = {
  shim: Shim | undefined;
  /** Timer of the next start, after a crash. */
  restart: Disposable | undefined;
  /** Resolves when the last process is cleaned up. */
  cleaned: Promise<void>;
  delayMs: number;
};

/** The plugins that run, or are about to be restarted; the rest of the engine finds them here. */
export class PluginRuns implements OwnPlugins, Disposable {
  readonly #config: Config;
  readonly #installed: InstalledPlugins;
  readonly #byId = new Map<string, PluginRun>();
  #areLast = false;

  constructor(config: Config, installed: InstalledPlugins) {
    this.#config = config;
    this.#installed = installed;
  }

  of(id: string): PluginRun {
    const known = this.#byId.get(id);
    if (known !== undefined) return known;
    const run: PluginRun = { shim: undefined, restart: undefined, cleaned: Promise.resolve(), delayMs: 0 };
    this.#byId.set(id, run);
    return run;
  }

  /** It is disabled: it is not restarted. */
  forget(id: string): void {
    this.#byId.get(id)?.restart?.[Symbol.dispose]();
    this.#byId.delete(id);
  }

  has(ref: string): boolean {
    return this.#installed.search(ref) !== undefined;
  }

  names(type: string): string[] {
    return this.#installed
      .all()
      .filter((plugin) => plugin.isEnabled && isOfType(plugin, type))
      .map(({ name }) => name);
  }

  find(ref: string): OwnPlugin | undefined {
    const plugin = this.#installed.search(ref);
    if (plugin === undefined) return undefined;
    if (plugin.isEnabled) return this.addressed(plugin);
    throw new EngineError('notFound', `plugin ${plugin.name} found but disabled`);
  }

  addressed(plugin: InstalledPlugin): OwnPlugin {
    const { id, name } = plugin;
    const { Interface, PropagatedMount } = configOf(plugin);
    const propagated = PropagatedMount ?? '';
    const treeOf = (path: string): { root: string; inside: string } => {
      const inside = posix.normalize(`/${path}`);
      const isShown = propagated !== '' && (inside === propagated || inside.startsWith(`${propagated}/`));
      return isShown
        ? { root: propagatedFolder(this.#config, id), inside: inside.slice(propagated.length) }
        : { root: rootOf(this.#config, plugin), inside };
    };
    return {
      name,
      address: { kind: 'own', folder: socketFolder(this.#config, id), socket: Interface.Socket },
      hostPath: (path) => {
        const { root, inside } = treeOf(path);
        return below(root, inside);
      },
      show: (path, key) => {
        const { root, inside } = treeOf(path);
        return showView(this.#config, id, key, { root, path: inside });
      },
      hide: (key) => hideView(this.#config, id, key),
    };
  }

  /** Whether the daemon is ending: no plugin is started any more. */
  get areLast(): boolean {
    return this.#areLast;
  }

  [Symbol.dispose](): void {
    this.#areLast = true;
    for (const { restart } of this.#byId.values()) restart?.[Symbol.dispose]();
  }
}

/** For eyes only: a link in the plugin's files may be another one a moment later. */
function below(folder: string, path: string): string {
  const place = join(folder, path);
  try {
    const top = realpathSync(folder);
    const real = realpathSync(place);
    if (real === top || real.startsWith(`${top}/`)) return place;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return place;
    throw error;
  }
  throw new EngineError('failed', `the plugin's path ${path} leads out of its files`);
}

function isOfType(plugin: InstalledPlugin, type: string): boolean {
  return (configOf(plugin).Interface.Types ?? []).some((each) => each.startsWith(`docker.${type}/`));
}
