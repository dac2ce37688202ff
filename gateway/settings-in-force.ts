import { isDeepStrictEqual } from 'node:util';

import { SharedValues } from '@gantry/limiter/redis/shared-values.ts';

import { ConfigError, withOverrideOf } from './config/read.ts';
import { redisServersOf } from './config/redis-servers.ts';
import type { Config } from './config/schema.ts';
import type { GatewayLog } from './log.ts';
import { reloadable } from './reload.ts';

type Overrides = ReadonlyMap<string, unknown>;
type Apply = (config: Config) => Promise<void>;

/**
 * The settings in force: those of the file, and the operator's overrides of single callers, which go before it.
 *
 * Changes are made one after the other: each begins with what the one before it has left. With Redis the overrides are
 * those of all gateways on it; otherwise they last until the next start.
 */
export class SettingsInForce implements Disposable {
  readonly #apply: Apply;
  readonly #log: GatewayLog;
  readonly #shared: SharedValues | undefined;
  #file: Config;
  #current: Config;
  #overrides: Overrides = new Map();
  #lastChange: Promise<unknown> = Promise.resolve();

  constructor(config: Config, log: GatewayLog, apply: Apply) {
    this.#file = config;
    this.#current = config;
    this.#log = log;
    this.#apply = apply;
    if (config.store.kind !== 'redis') return;
    const { prefix, timeoutMs } = config.store;
    const servers = redisServersOf(config.store);
    this.#shared = new SharedValues({ ...servers, prefix, timeoutMs }, 'overrides', () => this.#follow());
  }

  get current(): Config {
    return this.#current;
  }

  /** Reads the file again. Errors in it are logged, and the old settings stay in force. */
  async reload(read: () => Config): Promise<void> {
    await this.#inTurn(async () => {
      try {
        const { config: next, needRestart } = reloadable(this.#current, read());
        await this.#put(next, this.#overrides);
        if (needRestart.length > 0)
          this.#log.logger.warn({ needRestart }, 'these settings change at the next start only');
        this.#log.logger.info('the settings were reloaded');
      } catch (error) {
        const reason = error instanceof ConfigError ? { problems: error.problems } : { err: error };
        this.#log.logger.error(reason, 'the settings were not reloaded: the old ones stay in force');
      }
    });
  }

  /** Gives a caller other limits; none: those of the file again. Returns the problems with them, or none. */
  async override(key: string, wanted: Readonly<Record<string, unknown>>): Promise<readonly string[]> {
    return await this.#inTurn(async () => {
      const others = [...this.#overrides].filter(([other]) => other !== key);
      const own: [string, unknown][] = Object.keys(wanted).length === 0 ? [] : [[key, wanted]];
      const overrides = new Map([...others, ...own]);
      try {
        withOverrides(this.#file, overrides);
      } catch (error) {
        if (error instanceof ConfigError) return error.problems;
        throw error;
      }
      await this.#shared?.set(key, own.length === 0 ? undefined : JSON.stringify(wanted));
      await this.#put(this.#file, overrides);
      return [];
    });
  }

  [Symbol.dispose](): void {
    this.#shared?.[Symbol.dispose]();
  }

  /** Takes in the overrides of all gateways. One that this version does not understand is left out. */
  #follow(): void {
    const followed = this.#inTurn(async () => {
      const overrides = new Map<string, unknown>();
      const values = await this.#shared?.read();
      for (const [key, text] of values ?? []) {
        try {
          const wanted: unknown = JSON.parse(text);
          withOverrides(this.#file, new Map([[key, wanted]]));
          overrides.set(key, wanted);
        } catch (error) {
          this.#log.logger.error({ err: error, caller: key }, 'an override of another gateway is not understood');
        }
      }
      if (!isDeepStrictEqual(overrides, this.#overrides)) await this.#put(this.#file, overrides);
    });
    followed.catch((error: unknown) => this.#log.failure('store', error)); // tried again a second later
  }

  async #put(file: Config, overrides: Overrides): Promise<void> {
    const next = withOverrides(file, overrides);
    await this.#apply(next);
    this.#current = next;
    this.#file = file;
    this.#overrides = overrides;
  }

  async #inTurn<T>(change: () => Promise<T>): Promise<T> {
    const changed = this.#lastChange.then(change);
    this.#lastChange = changed.catch(() => undefined);
    return await changed;
  }
}

function withOverrides(file: Config, overrides: Overrides): Config {
  return [...overrides].reduce((settings, [key, wanted]) => withOverrideOf(settings, key, wanted), file);
}
