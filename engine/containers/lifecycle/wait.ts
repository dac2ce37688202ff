import type { Engine } from '../../engine.ts';
import type { Run } from '../runs/runs.ts';
import { exitCodeOf, isOver } from '../state.ts';

type Needs = Pick<Engine, 'containers' | 'runs'>;

export type WaitCondition = 'not-running' | 'next-exit' | 'removed';

/** A run that is over: its code, and the reason if it could not be started. */
export type LastRun = Readonly<{ exitCode: number; error: string }>;

/**
 * Registers a waiting client before it returns; throws `notFound`. Resolves when the condition holds: at once if it does
 * so already, at the end of a run also if a restart policy begins the next one. Undefined when the signal aborts first.
 */
export function beginWait(
  engine: Needs,
  ref: string,
  condition: WaitCondition,
  signal: AbortSignal,
): Promise<LastRun | undefined> {
  const { id, state, error } = engine.containers.find(ref);
  if (condition === 'not-running' && isOver(state)) return Promise.resolve({ exitCode: exitCodeOf(state), error });
  const run = engine.runs.of(id);
  return lastRun(engine, id, over(run, condition, signal));
}

function over(run: Run, condition: WaitCondition, signal: AbortSignal): Promise<number | undefined> {
  switch (condition) {
    case 'not-running':
      return run.nextEnd(signal);
    case 'next-exit':
      return run.nextExit(signal);
    case 'removed':
      return run.removal(signal);
  }
}

async function lastRun(
  { containers }: Needs,
  id: string,
  ended: Promise<number | undefined>,
): Promise<LastRun | undefined> {
  const exitCode = await ended;
  return exitCode === undefined ? undefined : { exitCode, error: containers.get(id)?.error ?? '' };
}
