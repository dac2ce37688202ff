import { EngineError } from '../../lib/errors.ts';
import { isOver } from '../state.ts';
import { removeContainer, type RemoveNeeds } from './remove.ts';

/**
 * Removes containers that were created with `AutoRemove`, with their anonymous volumes, when they have stopped; those of
 * an earlier daemon at once, also when they never ran.
 */
export function beginAutoRemovals(engine: RemoveNeeds): void {
  const { containers, runs } = engine;
  const isDue = (id: string): boolean => {
    const container = containers.get(id);
    return container?.hostConfig.AutoRemove === true && isOver(container.state);
  };
  runs.onOver((id) => (isDue(id) ? removeEnded(engine, id) : undefined));
  for (const { id } of containers.all()) if (isDue(id)) removeEnded(engine, id);
}

/** A daemon that ends leaves it to the next one. */
function removeEnded(engine: RemoveNeeds, id: string): void {
  engine.background.untilDone('remove a container by AutoRemove', { container: id }, async () => {
    try {
      await removeContainer(engine, id, { volumes: true });
    } catch (error) {
      // A client has removed it, or started it again: then the next end counts.
      const isOthers = error instanceof EngineError && (error.kind === 'notFound' || error.kind === 'conflict');
      if (!isOthers) throw error;
    }
  });
}
