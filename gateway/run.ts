import { openAdmin } from './admin/server.ts';
import { ConfigError, withOverrideOf } from './config/read.ts';
import type { Config } from './config/schema.ts';
import { GatewayLog } from './log.ts';
import type { Service } from './operator.ts';
import { reloadable } from './reload.ts';
import { startGateway } from './start.ts';
import { openStore } from './store.ts';
import { startWorkers } from './workers/primary.ts';

/** A gateway with its admin socket. Disposing drains it. */
export type RunningGateway = AsyncDisposable & {
  readonly addresses: readonly string[];
  /** Reads the settings again. Errors in them are logged, and the old ones stay in force. */
  reload(): Promise<void>;
};

/** `read` gives the settings as they are now, for a reload; it throws a `ConfigError` when they are wrong. */
export async function runGateway(config: Config, read: () => Config): Promise<RunningGateway> {
  await using undo = new AsyncDisposableStack();
  const log = new GatewayLog(config.log);
  const service = undo.use(await startService(config, log));
  let current = config;
  let fromFile = config;
  /** Set by the admin socket; they last until the next start and take precedence over the file. */
  let overrides: ReadonlyMap<string, unknown> = new Map();
  const put = async (file: Config, over: typeof overrides): Promise<void> => {
    const next = [...over].reduce((settings, [key, wanted]) => withOverrideOf(settings, key, wanted), file);
    await service.reload(next);
    current = next;
    fromFile = file;
    overrides = over;
  };
  const override = async (key: string, wanted: Readonly<Record<string, unknown>>): Promise<readonly string[]> => {
    const others = [...overrides].filter(([other]) => other !== key);
    const own: [string, unknown][] = Object.keys(wanted).length === 0 ? [] : [[key, wanted]];
    try {
      await put(fromFile, new Map([...others, ...own]));
      return [];
    } catch (error) {
      if (error instanceof ConfigError) return error.problems;
      throw error;
    }
  };
  undo.use(await openAdmin(config, service.operator, log, { current: () => current, override }));
  const parts = undo.move();
  log.logger.info({ addresses: service.addresses, upstream: config.upstream, store: config.store.kind }, 'ready');
  const reload = async (): Promise<void> => {
    try {
      const { config: next, needRestart } = reloadable(current, read());
      await put(next, overrides);
      if (needRestart.length > 0) log.logger.warn({ needRestart }, 'these settings change at the next start only');
      log.logger.info('the settings were reloaded');
    } catch (error) {
      const reason = error instanceof ConfigError ? { problems: error.problems } : { err: error };
      log.logger.error(reason, 'the settings were not reloaded: the old ones stay in force');
    }
  };
  return {
    addresses: service.addresses,
    reload,
    [Symbol.asyncDispose]: async () => {
      log.logger.info('ending: requests under way are answered first');
      await parts.disposeAsync();
      await log.end();
    },
  };
}

/** The gateway without its admin socket: in this process, or in as many as the configuration says. */
export async function startService(config: Config, log: GatewayLog): Promise<Service> {
  return config.workers > 1
    ? await startWorkers(config, log)
    : await startGateway(config, log, await openStore(config, log));
}
