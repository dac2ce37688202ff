import { removeContainer } from '../containers/lifecycle/remove.ts';
import type { Engine } from '../engine.ts';
import { EngineError } from '../lib/errors.ts';
import { removeOldBuilds } from './context/context.ts';
import { removeOldSecrets } from './secrets.ts';

/** At the daemon's start: removes the containers of builds of the last daemon, which have no client any more. */
export function removeBuilds(engine: Engine): void {
  removeOldBuilds(engine.config);
  removeOldSecrets(engine.config);
  for (const { id, ofBuild } of engine.containers.all()) {
    if (ofBuild !== true) continue;
    engine.background.untilDone('remove the container of a build that was cut off', { container: id }, async () => {
      try {
        await removeContainer(engine, id, { force: true, volumes: true });
      } catch (error) {
        if (!(error instanceof EngineError) || error.kind !== 'notFound') throw error;
      }
    });
  }
}
