import { EngineError } from '../lib/errors.ts';
import { emitContainer } from './container-events.ts';
import { startContainer, type StartNeeds } from './runs/start.ts';
import { stopContainer, type StopNeeds } from './stop.ts';

/** Stops it where it runs, and starts it. Specification, endpoint 12. */
export async function restartContainer(
  engine: StartNeeds & StopNeeds,
  ref: string,
  graceSeconds?: number,
): Promise<void> {
  const { id } = engine.containers.find(ref);
  try {
    await stopContainer(engine, id, graceSeconds);
  } catch (error) {
    if (!(error instanceof EngineError) || error.kind !== 'notModified') throw error;
  }
  await startContainer(engine, id);
  emitContainer(engine.events, 'restart', engine.containers.find(id));
}
