import { EngineError } from '../lib/errors.ts';
import type { UsersOf, VolumeDriver } from './driver.ts';
import type { Volume } from './store.ts';

/** The volume drivers by their names; the first is the default. */
export class VolumeDrivers {
  readonly #byName: ReadonlyMap<string, VolumeDriver>;
  readonly #default: VolumeDriver;

  constructor(first: VolumeDriver, ...more: readonly VolumeDriver[]) {
    this.#byName = new Map([first, ...more].map((driver) => [driver.name, driver]));
    this.#default = first;
  }

  get names(): string[] {
    return [...this.#byName.keys()];
  }

  /** Throws `notFound`. An empty name means the default. */
  find(name: string): VolumeDriver {
    const found = name === '' ? this.#default : this.#byName.get(name);
    if (found !== undefined) return found;
    throw new EngineError('notFound', `error looking up volume plugin ${name}: plugin "${name}" not found`);
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
