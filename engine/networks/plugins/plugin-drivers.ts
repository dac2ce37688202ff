import { EngineError } from '../../lib/errors.ts';
import type { NetworkDriver } from '../drivers/driver.ts';
import { PluginAddresses, type AddressParts } from './addresses.ts';
import { pluginDriver, type PluginDriverParts } from './driver.ts';
import { withPluginAddresses } from './with-plugin-addresses.ts';

/** The drivers of plugins by their names, and those whose addresses are of plugins. Nobody is asked here. */
export class PluginDrivers {
  readonly #parts: PluginDriverParts & AddressParts;
  readonly #drivers = new Map<string, NetworkDriver>();
  readonly #addresses = new Map<string, PluginAddresses>();
  readonly #addressed = new Map<string, Map<NetworkDriver, NetworkDriver>>();

  constructor(parts: PluginDriverParts & AddressParts) {
    this.#parts = parts;
  }

  /** The whole name of a plugin that may be called by a shorter one. Throws `notFound`. */
  nameOf(name: string): string {
    const { plugins } = this.#parts;
    if (!plugins.has(name)) throw new EngineError('notFound', `plugin "${name}" not found`);
    return plugins.nameOf(name);
  }

  driver(name: string): NetworkDriver {
    const driver = this.#drivers.get(name) ?? pluginDriver(name, this.#parts);
    this.#drivers.set(name, driver);
    return driver;
  }

  /** A driver with the addresses of a plugin. */
  addressed(driver: NetworkDriver, name: string): NetworkDriver {
    const addresses = this.#addresses.get(name) ?? new PluginAddresses(name, this.#parts);
    this.#addresses.set(name, addresses);
    const known = this.#addressed.get(name) ?? new Map<NetworkDriver, NetworkDriver>();
    this.#addressed.set(name, known);
    const made = known.get(driver) ?? withPluginAddresses(addresses, driver);
    known.set(driver, made);
    return made;
  }
}
