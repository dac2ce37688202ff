import { EngineError } from '../lib/errors.ts';
import type { Exits } from './runs/exits.ts';
import { exitCodeOf, isAlive } from './state.ts';
import type { ContainerStore } from './store.ts';

type Needs = { containers: ContainerStore; exits: Exits };

/**
 * The exit code: at once when nothing runs, else with the end of the run, also when a restart policy begins the next
 * one. Ends with the client. Specification, endpoint 20.
 */
export async function waitForContainer(engine: Needs, ref: string, signal: AbortSignal): Promise<number> {
  const { id, state } = engine.containers.find(ref);
  const runs = isAlive(state) || state.status === 'starting' || state.status === 'restarting';
  if (!runs) return exitCodeOf(state);
  const exitCode = await engine.exits.runs.next(id, signal);
  if (exitCode === undefined) throw new EngineError('failed', 'the client has gone');
  return exitCode;
}
