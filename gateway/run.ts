import { openAdmin } from './admin/server.ts';
import type { Config } from './config/schema.ts';
import { GatewayLog } from './log.ts';
import type { Service } from './operator.ts';
import { SettingsInForce } from './settings-in-force.ts';
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
  const settings = undo.use(new SettingsInForce(config, log, async (next) => await service.reload(next)));
  undo.use(await openAdmin(config, service.operator, log, settings));
  const parts = undo.move();
  log.logger.info({ addresses: service.addresses, upstream: config.upstream, store: config.store.kind }, 'ready');
  return {
    addresses: service.addresses,
    reload: async () => await settings.reload(read),
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
