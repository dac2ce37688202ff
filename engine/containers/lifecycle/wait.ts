import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { exitCodeOf, isOver } from '../state.ts';

type Needs = Pick<Engine, 'containers' | 'runs'>;

/**
 * The exit code: at once if the container does not run, else at the end of the run, even if a restart policy begins the
 * next one. Ends with the client. Specification, endpoint 20.
 */
export async function waitForContainer(engine: Needs, ref: string, signal: AbortSignal): Promise<number> {
  const { id, state } = engine.containers.find(ref);
  if (isOver(state)) return exitCodeOf(state);
  const exitCode = await engine.runs.of(id).nextEnd(signal);
  if (exitCode === undefined) throw new EngineError('failed', 'the client has gone');
  return exitCode;
}
