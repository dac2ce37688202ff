import type { Logger } from 'pino';

import { EngineError } from '../../lib/errors.ts';
import { stopContainer, type StopNeeds } from '../lifecycle/stop.ts';
import { isAlive } from '../state.ts';

/**
 * Stops all running containers at once, at the end of a daemon without live-restore. One that cannot be stopped is
 * logged, and does not stop the others from ending.
 */
export async function stopAllContainers(engine: StopNeeds & { log: Logger }): Promise<void> {
  const { config, containers, log } = engine;
  const alive = containers.all().filter(({ state }) => isAlive(state) || state.status === 'starting');
  await Promise.all(
    alive.map(async ({ id }) => {
      try {
        await stopContainer(engine, id, { graceSeconds: config.shutdownTimeoutSeconds, by: 'daemon' });
      } catch (error) {
        if (error instanceof EngineError && error.kind === 'notModified') return; // its start had failed
        log.error({ err: error, container: id }, 'a container could not be stopped at the end of the daemon');
      }
    }),
  );
}
