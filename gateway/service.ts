import type { Config } from './config/schema.ts';
import type { GatewayLog } from './log.ts';
import type { Service } from './operator.ts';
import { startGateway } from './start.ts';
import { openStore } from './store.ts';
import { startWorkers } from './workers/primary.ts';

/** Starts a gateway in this process, or in as many as the configuration wants. */
export async function startService(config: Config, log: GatewayLog): Promise<Service> {
  if (config.workers > 1) return await startWorkers(config, log);
  const store = openStore(config, log);
  return await startGateway(config, log, store);
}
