import { EngineError } from '../../lib/errors.ts';
import { emitIfThere } from '../container-events.ts';
import { startContainer, type StartNeeds } from '../runs/start.ts';
import { stopContainer, type StopNeeds, type StopOptions } from './stop.ts';

/** Stops a running container, and starts it. Specification, endpoint 12. */
export async function restartContainer(
  engine: StartNeeds & StopNeeds,
  ref: string,
  options: StopOptions = {},
): Promise<void> {
  const { id } = engine.containers.find(ref);
  using _bridged = engine.runs.of(id).bridge(); // AutoRemove does not count between stop and start
  await unlessSoAlready(async () => await stopContainer(engine, id, options));
  await unlessSoAlready(async () => await startContainer(engine, id)); // another client may have been faster
  emitIfThere(engine, 'restart', id);
}

async function unlessSoAlready(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof EngineError) || error.kind !== 'notModified') throw error;
  }
}
