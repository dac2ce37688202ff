import { EngineError } from '../lib/errors.ts';
import type { Plugins } from '../plugins/plugins.ts';
import type { UsersOf, VolumeDriver } from './driver.ts';
import { PluginVolumes } from './plugin-volumes.ts';
import type { Volume } from './store.ts';

/** The volume drivers by their names; the first is the default. */
export class VolumeDrivers {
  readonly #byName: ReadonlyMap<string, VolumeDriver>;
  readonly #default: VolumeDriver;
  readonly #plugins: Plugins | undefined;
  readonly #ofPlugins = new Map<string, VolumeDriver>();

  /** Other names are those of plugins. */
  constructor(first: VolumeDriver, plugins?: Plugins, ...more: readonly VolumeDriver[]) {
    this.#plugins = plugins;
    this.#byName = new Map([first, ...more].map((driver) => [driver.name, driver]));
    this.#default = first;
  }

  get names(): string[] {
    const own = this.#plugins?.ownNames('volumedriver') ?? [];
    return [...new Set([...this.#byName.keys(), ...this.#ofPlugins.keys(), ...own])];
  }

  /** Throws `notFound`. An empty name means the default. */
  find(name: string): VolumeDriver {
    const found = name === '' ? this.#default : this.#byName.get(name);
    if (found !== undefined) return found;
    const plugins = this.#plugins;
    if (plugins === undefined || !plugins.has(name)) throw unknown(name, `plugin "${name}" not found`);
    const known = this.#ofPlugins.get(name);
    if (known !== undefined) return known;
    try {
      return this.#ofPlugin(plugins, plugins.nameOf(name));
    } catch (error) {
      throw error instanceof EngineError ? unknown(name, error.message) : error;
    }
  }

  /** Like `find`, but waits for a plugin that starts beside us. */
  async available(name: string): Promise<VolumeDriver> {
    if (name !== '' && !this.#byName.has(name)) await this.#plugins?.appears(name);
    return this.find(name);
  }

  #ofPlugin(plugins: Plugins, name: string): VolumeDriver {
    const driver = this.#ofPlugins.get(name) ?? new PluginVolumes(plugins, name);
    this.#ofPlugins.set(name, driver);
    return driver;
  }

  /** At the daemon's start, before anybody uses a volume. */
  async reconcile(
    volumes: Readonly<{ all(): readonly Volume[]; isKnown(name: string): boolean }>,
    usersOf: UsersOf,
  ): Promise<void> {
    for (const driver of this.#byName.values()) {
      const own = volumes.all().filter((volume) => volume.driver === driver.name);
      await driver.reconcile(own, (name) => volumes.isKnown(name), usersOf);
    }
  }
}

function unknown(name: string, why: string): EngineError {
  return new EngineError('notFound', `error looking up volume plugin ${name}: ${why}`);
}
